"""Views: pages in sections, each of which is rendered again when what it shows has changed.

A view is a key, so that all clients that look at the same are sent the same text, rendered once.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from planish.core import PlanishError, StoreError
from planish.core.arguments import as_options
from planish.core.wording import duration, when
from planish.dashboard.runs import FollowedRun, Runs
from planish.report.page import drawn, templates

if TYPE_CHECKING:
    from jinja2 import Environment

READ_S = 0.3
"""Seconds for which a section reads what it shows; it is then shown as far as it is known."""
ROWS = 50
"""Rows of a page of a table."""


class Rendered(NamedTuple):
    """A section as HTML.

    Args:
        html: one element with the section's name as its id.
        whole: whether it shows all that is stored.
    """

    html: str
    whole: bool = True


Sections = Mapping[str, Callable[[], Rendered]]


class GoneError(PlanishError):
    """A run that is shown is no longer in the store."""


@cache
def environment() -> Environment:
    """Return the templates of the pages."""
    made = templates("planish.dashboard", "planish.report")
    made.filters.update(when=when, since=_since)
    return made


def compile_templates() -> None:
    """Compile the templates of all pages, which otherwise the first client waits for."""
    made = environment()
    for name in made.list_templates(extensions=["jinja"]):
        made.get_template(name)


def _since(seconds: float) -> str:
    """Return how long ago something was, to the minute; the page itself keeps it right."""
    return duration(max(0.0, round(time.time() - seconds)))


@dataclass(frozen=True)
class View(ABC):
    """A page of a store.

    Args:
        runs: of the store.
        key: names the store in addresses.
    """

    runs: Runs = field(compare=False)
    key: str
    template = ""
    drawn = True
    """If true, it has charts."""
    first = ("runs",)
    """Sections that come with the page; the others take longer, and follow."""
    shares: ClassVar[Mapping[str, float]] = {"runs": 0.7}
    """Section name to its part of the time for rendering; the other sections have equal parts of the rest."""

    slow: ClassVar[Collection[str]] = ()
    """Sections that are rendered on demand, or once nothing writes to what is shown."""

    @abstractmethod
    def stamp(self) -> object:
        """Return what differs when something else is to be shown; takes microseconds.

        Raises:
            GoneError: there is nothing to be shown any more.
        """

    @abstractmethod
    def sections(self) -> Sections:
        """Return what renders each section, by its name, in the order of the page."""

    def share(self, name: str) -> float:
        """Return a section's part of the time for rendering, from 0 to 1."""
        others = len(self.sections()) - len(self.shares)
        return self.shares[name] if name in self.shares else (1 - sum(self.shares.values())) / others

    def is_over(self) -> bool:
        """Return whether nothing writes to what is shown, so that its last state may be rendered at once."""
        return False

    def page(self) -> Mapping[str, Any]:
        """Return what the page shows around its sections."""
        return {}

    def stamp_of(self, run_id: str) -> object:
        """Return the stamp of a run, for `stamp`.

        Raises:
            GoneError: it is not in the store any more.
        """
        source = self.runs.source
        if source.error:
            return source.error
        if run_id not in source.stamps:
            raise GoneError(f"Run {run_id} is not in the store {source.label} any more.")
        return source.stamps[run_id]

    def is_written(self, run_id: str) -> bool:
        """Return whether a process writes to a run."""
        stamp = self.runs.source.stamps.get(run_id)
        return stamp is not None and stamp[1]

    def followed(self, run_id: str) -> FollowedRun:
        """Return a run as it is stored now.

        Raises:
            PlanishError: it cannot be read.
        """
        if self.runs.source.error:
            raise StoreError(self.runs.source.error)
        return self.runs.follow(run_id, READ_S)

    def render_live(self, name: str) -> Rendered:
        """Render a section, or where it is slow and a search goes on, a button that asks for it."""
        if name in self.slow and not self.is_over():
            return Rendered(fill("slow.html.jinja", name=name))
        return self.render(name)

    def render(self, name: str) -> Rendered:
        """Render a section; where it cannot be, it says why."""
        try:
            return self.sections()[name]()
        except PlanishError as error:
            html = fill("error.html.jinja", name=name, error=as_options(str(error)))
            return Rendered(html)


def figures_of(draws: Iterable[Callable[[], Any]]) -> list[Mapping[str, Any]]:
    """Return the figures that there is something to draw in, as JSON."""
    return [figure for draw in draws if (figure := drawn(draw)) is not None]


def fill(template: str, **contents: Any) -> str:
    """Fill a template."""
    return environment().get_template(template).render(contents)
