"""An HTML page as the tests see it."""

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "img", "hr", "input", "base"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Page(HTMLParser):
    """The elements in the order that they begin; each with its own text and that of its children.

    Raises:
        AssertionError: an element is not closed, or another than the innermost one is.
    """

    html: str
    elements: list[Element] = field(default_factory=list[Element])
    open: list[Element] = field(default_factory=list[Element])

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)
        self.close()
        assert not self.open, f"<{self.open[-1].tag}> is not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop().tag == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Find elements; `kind` stands for the attribute `class`."""
        wanted = {"class" if name == "kind" else name: value for name, value in attributes.items()}
        return [e for e in self.elements if e.tag == tag and wanted.items() <= e.attributes.items()]

    @property
    def sections(self) -> dict[str, str]:
        """Id to text."""
        return {e.attributes["id"]: e.text for e in self.all("section")}

    @property
    def charts(self) -> list[Any]:
        """The figures, as JSON."""
        return [json.loads(e.text) for e in self.all("script", type="application/json")]

    @property
    def verdict(self) -> tuple[str, str]:
        """The verdict's kind and line."""
        (box,) = (e for e in self.all("div") if e.attributes.get("class", "").startswith("verdict "))
        return box.attributes["class"].removeprefix("verdict "), box.text
