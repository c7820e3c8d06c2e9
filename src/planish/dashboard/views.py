"""Views: pages in sections, each of which is rendered again when what it shows has changed.

A view is a key, so that all clients that look at the same are sent the same text, rendered once.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from planish.core import PlanishError, StoreError
from planish.core.wording import amount, duration, improvement, verdict_word, when, words
from planish.dashboard.runs import FollowedRun, Runs, RunSummary
from planish.plot import PLAIN
from planish.report.page import FINALISTS, TrialCounts, drawn, provenance, repeat, templates
from planish.tuning.trial_statistics import MEANING, flops_of

if TYPE_CHECKING:
    from jinja2 import Environment

_READ_S = 0.3
"""Seconds for which a section reads what it shows; it is then shown as far as it is known."""
_ROWS = 50
_TEXT_MAX = 200_000
_DETAIL_MAX = 4_000
_STEPS_MAX = 20_000
_CAUSES_MAX = 50


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
    """What is shown is not in the store any more."""


@cache
def environment() -> Environment:
    """Return the templates of the pages."""
    made = templates("planish.dashboard", "planish.report")
    made.filters.update(when=when, since=_since)
    return made


def _since(seconds: float) -> str:
    """Return how long ago something was, to the minute; the page itself keeps it right."""
    return duration(max(0.0, round(time.time() - seconds)))


class View(ABC):
    """A page of a store."""

    runs: Runs
    template: str

    @abstractmethod
    def stamp(self) -> object:
        """Return what differs when something else is to be shown; takes microseconds.

        Raises:
            GoneError: there is nothing to be shown any more.
        """

    @abstractmethod
    def sections(self) -> Sections:
        """Return what renders each section, by its name, in the order of the page."""

    def page(self) -> Mapping[str, Any]:
        """Return what the page shows around its sections."""
        return {}

    def render(self, name: str) -> Rendered:
        """Render a section; where it cannot be, it says why."""
        try:
            return self.sections()[name]()
        except PlanishError as error:
            html = _template("error.html.jinja", name=name, error=str(error))
            return Rendered(html)


def _figures(draws: Iterable[Callable[[], Any]]) -> list[Mapping[str, Any]]:
    """Return the figures that there is something to draw in, as JSON."""
    return [figure for draw in draws if (figure := drawn(draw)) is not None]


def _template(template: str, **contents: Any) -> str:
    return environment().get_template(template).render(contents)


SORTS: Mapping[str, Callable[[RunSummary], Any]] = {
    "age": lambda each: -each.run.started if each.run else 0.0,
    "level": lambda each: each.level,
    "program": lambda each: each.program.lower(),
    "status": lambda each: each.run.status if each.run else "",
    "gain": lambda each: each.gain or 0.0,
    "verdict": lambda each: each.verdict.kind if each.verdict else "",
    "trials": lambda each: each.run.trials if each.run else 0,
}
"""What a list of runs can be sorted by."""


@dataclass(frozen=True)
class RunsQuery:
    """Choice of runs.

    Args:
        text: words that are in the program, the level, the searcher or the id.
        level: of the runs; empty for all.
        status: of the runs; empty for all.
        verdict: kind of the verdict; empty for all.
        sort: a name of `SORTS`, with `-` before it for the other direction.
        page: from 1.
    """

    text: str = ""
    level: str = ""
    status: str = ""
    verdict: str = ""
    sort: str = "age"
    page: int = 1

    def chooses(self, run: RunSummary) -> bool:
        """Return whether a run is shown."""
        about = f"{run.id} {run.level} {run.program} {run.run.searcher if run.run else ''}".lower()
        return (
            all(word in about for word in self.text.lower().split())
            and self.level in ("", run.level)
            and self.status in ("", run.run.status if run.run else "damaged")
            and self.verdict in ("", run.verdict.kind if run.verdict else "")
        )

    def sorted(self, runs: Iterable[RunSummary]) -> list[RunSummary]:
        """Return the runs in their order; of equals the newest is first."""
        name = self.sort.removeprefix("-")
        return sorted(runs, key=SORTS.get(name, SORTS["age"]), reverse=self.sort.startswith("-"))


@dataclass(frozen=True)
class RunsView(View):
    """The list of a store's runs."""

    runs: Runs = field(compare=False)
    key: str
    query: RunsQuery = RunsQuery()
    template = "runs.html.jinja"

    def stamp(self) -> object:
        return self.runs.source.version

    def sections(self) -> Sections:
        return {"runs": self._list}

    def page(self) -> Mapping[str, Any]:
        known, _ = self.runs.summaries(0) if not self.runs.source.error else ([], True)
        return {
            "levels": sorted({each.level for each in known if each.level}),
            "statuses": ("running", "finished", "stopped", "interrupted", "failed"),
            "verdicts": ("better", "same", "worse", "undecided", "failed", "open", "nothing"),
        }

    def _list(self) -> Rendered:
        source, query = self.runs.source, self.query
        if source.error:
            raise StoreError(source.error)
        known, whole = self.runs.summaries(_READ_S)
        found = query.sorted(each for each in known if query.chooses(each))
        pages = max(1, -(-len(found) // _ROWS))
        page = min(max(1, query.page), pages)
        return Rendered(
            _template(
                "runs_list.html.jinja",
                key=self.key,
                query=query,
                rows=[_run_row(each) for each in found[(page - 1) * _ROWS : page * _ROWS]],
                count=len(found),
                total=len(known),
                page=page,
                pages=pages,
                columns=_RUN_COLUMNS,
                whole=whole,
            ),
            whole,
        )


_RUN_COLUMNS = (
    ("run", ""),
    ("level", "level"),
    ("program", "program"),
    ("status", "status"),
    ("best", ""),
    ("gain", "-gain"),
    ("verdict", "verdict"),
    ("trials", "-trials"),
    ("age", "age"),
)
"""Heads of the columns, and how a click on each sorts first; empty for one that is not sorted by."""


def _run_row(each: RunSummary) -> Mapping[str, Any]:
    objective = each.objective
    value = "" if each.value is None or objective is None else amount(each.value, objective.unit)
    gain = "" if each.gain is None or objective is None else improvement(each.gain, objective)
    kind = each.verdict.kind if each.verdict else ""
    return {
        "summary": each,
        "value": value,
        "gain": gain,
        "kind": kind,
        "word": verdict_word(kind, objective) if objective else kind,
    }


@dataclass(frozen=True)
class TrialsQuery:
    """Choice of trials.

    Args:
        outcome: "" for all, "measured", "failed", or the name of a cause of failures.
        order: "newest", "first", "best" or "worst".
        page: from 1.
    """

    outcome: str = ""
    order: str = "newest"
    page: int = 1


@dataclass(frozen=True)
class RunView(View):
    """The page of a run."""

    runs: Runs = field(compare=False)
    key: str
    run_id: str
    query: TrialsQuery = TrialsQuery()
    template = "run.html.jinja"

    def stamp(self) -> object:
        source = self.runs.source
        if source.error:
            return source.error
        if self.run_id not in source.stamps:
            raise GoneError(f"Run {self.run_id} is not in the store {source.label} any more.")
        return source.stamps[self.run_id]

    def sections(self) -> Sections:
        return {
            "summary": self._summary,
            "search": self._search,
            "comparison": self._comparison,
            "trials": self._trials,
            "failures": self._failures,
            "time": self._time,
            "winner": self._winner,
            "provenance": self._provenance,
        }

    def _followed(self) -> FollowedRun:
        if self.runs.source.error:
            raise StoreError(self.runs.source.error)
        return self.runs.follow(self.run_id, _READ_S)

    def _render(self, template: str, followed: FollowedRun, **contents: Any) -> Rendered:
        result = followed.result
        shared: dict[str, Any] = {
            "key": self.key,
            "result": result,
            "run": result.run,
            "objective": result.objective,
            "comparison": result.comparison,
            "front": None,
            "columns": followed.columns,
            "tried": len(followed.columns),
            "failed": followed.columns.failed,
            "whole": followed.whole,
            "text_max": _TEXT_MAX,
            "detail_max": _DETAIL_MAX,
            "steps_max": _STEPS_MAX,
        }
        return Rendered(_template(template, **shared, **contents), followed.whole)

    def _summary(self) -> Rendered:
        followed = self._followed()
        result, best = followed.result, followed.columns.best
        value = None if best is None else best.cost(result.objective)
        return self._render(
            "run_summary.html.jinja",
            followed,
            verdict=followed.verdict,
            best=None if value is None else result.objective.cost(value),
        )

    def _search(self) -> Rendered:
        from planish.plot.search import draw_history

        followed = self._followed()
        result, columns = followed.result, followed.columns
        baseline = columns.baseline_value
        if baseline is None and result.comparison:
            baseline = result.comparison.baseline.lead.median
        axes: Mapping[Literal["trials", "time"], float | None] = {
            "trials": None,
            "time": result.run.started,
        }
        charts = _figures(
            partial(draw_history, [result], [columns.curve(since)], [baseline], over, PLAIN)
            for over, since in axes.items()
        )
        return self._render("run_search.html.jinja", followed, charts=charts)

    def _comparison(self) -> Rendered:
        from planish import plot

        followed = self._followed()
        result = followed.result
        draws = (partial(draw, result, template=PLAIN) for draw in (plot.comparison, plot.samples))
        return self._render(
            "run_comparison.html.jinja",
            followed,
            charts={"finalists": _figures(draws) if result.comparison else []},
            captions={"finalists": FINALISTS},
            flops=flops_of(result.best_trial, result.objective),
            words=words(result.objective),
        )

    def _trials(self) -> Rendered:
        followed = self._followed()
        columns, query = followed.columns, self.query
        chosen = columns.select(query.outcome, query.order)
        pages = max(1, -(-len(chosen) // _ROWS))
        page = min(max(1, query.page), pages)
        shown = chosen[(page - 1) * _ROWS : page * _ROWS].tolist()
        found = self.runs.source.reader.trials_at(self.run_id, shown, columns.steps)
        by_index = {trial.index: trial for trial in found}
        objectives = followed.result.stored.objectives
        return self._render(
            "run_trials.html.jinja",
            followed,
            query=query,
            rows=[by_index[index] for index in shown if index in by_index],
            objectives=objectives,
            count=len(chosen),
            page=page,
            pages=pages,
        )

    def _failures(self) -> Rendered:
        followed = self._followed()
        groups = followed.columns.failure_groups()
        return self._render(
            "failures.html.jinja",
            followed,
            failures=groups[:_CAUSES_MAX],
            other_failures=sum(group.count for group in groups[_CAUSES_MAX:]),
        )

    def _time(self) -> Rendered:
        from planish.plot.search import draw_stages

        followed = self._followed()
        stages = followed.columns.stage_times(followed.run.seconds)
        of: Sequence[Literal["run", "trial"]] = ("run", "trial")
        bars = (partial(draw_stages, [followed.result], [stages], each, PLAIN) for each in of)
        return self._render(
            "run_time.html.jinja",
            followed,
            stages=stages,
            charts={"time": _figures(bars)},
            captions={"time": "First the whole run, all workers together; then the median trial."},
            meaning=MEANING,
        )

    def _winner(self) -> Rendered:
        return self._render("run_winner.html.jinja", self._followed())

    def _provenance(self) -> Rendered:
        followed = self._followed()
        columns = followed.columns
        counts = TrialCounts(len(columns), columns.failed, columns.cached, frozenset(columns.hosts))
        return self._render(
            "provenance.html.jinja",
            followed,
            provenance=provenance(followed.result, counts),
            repeat=repeat(followed.result),
        )
