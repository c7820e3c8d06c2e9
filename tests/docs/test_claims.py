"""Each claim of the papers has a verdict, a scale where it was measured, and figures of the results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "claims.md").read_text(encoding="utf-8")
VERDICTS = {"confirmed", "confirmed in part", "refuted", "not tellable", "not measured"}
INCLUDED = re.compile(r"```{include} (\S+)")
LINK = re.compile(r"\]\(([\w/-]+\.md)\)")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def sections() -> list[tuple[str, list[list[str]]]]:
    """The sections' texts, and the cells of their rows."""
    found = list[tuple[str, list[list[str]]]]()
    for text in PAGE.split("\n## ")[1:]:
        lines = [line for line in text.splitlines() if line[:1] == "|"]
        found.append((text, [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]))
    return found


def read(page: str) -> str:
    """A page of the documentation, with what it includes."""
    text = (DOCS / page).read_text(encoding="utf-8")
    folder = (DOCS / page).parent
    return text + "".join((folder / name).read_text(encoding="utf-8") for name in INCLUDED.findall(text))


@pytest.mark.parametrize(("text", "rows"), sections(), ids=[text.splitlines()[0] for text, _ in sections()])
def test_a_claim_has_a_verdict_a_scale_and_figures_of_its_results(text: str, rows: list[list[str]]) -> None:
    stored = "\n".join(read(page) for page in dict.fromkeys(LINK.findall(text)))
    known = {*NUMBER.findall(stored)}
    for claim, verdict, here, scale in rows:
        assert verdict in VERDICTS, claim
        assert (bool(here) and bool(scale)) or verdict == "not measured", claim
        lacking = [each for each in NUMBER.findall(LINK.sub("", here)) if each not in known]
        assert not lacking, f"{claim}: {lacking} are not in the results"


def test_all_papers_have_claims() -> None:
    assert [len(rows) >= 4 for _, rows in sections()] == [True] * 7
