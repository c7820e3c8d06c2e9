"""Pages of several runs: the list of a store's runs, filtered, sorted and in pages, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from planish.core import PlanishError, StoreError
from planish.core.wording import amount, improvement, interval, multiple, verdict_word
from planish.dashboard.runs import COMPARING, FollowedRun, RunSummary
from planish.dashboard.views import READ_S, ROWS, Rendered, Sections, View, figures_of, fill
from planish.plot import PLAIN, compare_runs
from planish.plot.runs import check_comparable
from planish.report import differences
from planish.report.page import provenance
from planish.tuning.result import EINSUM

SORTS: Mapping[str, Callable[[RunSummary], Any]] = {
    "age": lambda each: -each.run.started if each.run else 0.0,
    "level": lambda each: each.level,
    "program": lambda each: each.program.lower(),
    "status": lambda each: each.status,
    "gain": lambda each: each.gain or 0.0,
    "verdict": lambda each: each.verdict.kind if each.verdict else "",
    "trials": lambda each: each.run.trials if each.run else 0,
}
"""Keys by which a list of runs can be sorted."""


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
            and self.status in ("", run.status)
            and self.verdict in ("", run.verdict.kind if run.verdict else "")
        )

    def sorted(self, runs: Iterable[RunSummary]) -> list[RunSummary]:
        """Return the runs in their order; of equals the newest is first."""
        name = self.sort.removeprefix("-")
        return sorted(runs, key=SORTS.get(name, SORTS["age"]), reverse=self.sort.startswith("-"))


@dataclass(frozen=True)
class RunsView(View):
    """The list of a store's runs."""

    query: RunsQuery = RunsQuery()
    template = "runs.html.jinja"
    drawn = False

    def stamp(self) -> object:
        return self.runs.source.version

    def sections(self) -> Sections:
        return {"runs": self._list}

    def page(self) -> Mapping[str, Any]:
        known, _ = self.runs.summaries(0) if not self.runs.source.error else ([], True)
        return {
            "levels": sorted({each.level for each in known if each.level}),
            "statuses": ("running", COMPARING, "finished", "stopped", "interrupted", "failed"),
            "verdicts": ("better", "same", "worse", "undecided", "failed", "open", "nothing"),
        }

    def _list(self) -> Rendered:
        source, query = self.runs.source, self.query
        if source.error:
            raise StoreError(source.error)
        known, whole = self.runs.summaries(READ_S)
        found = query.sorted(each for each in known if query.chooses(each))
        pages = max(1, -(-len(found) // ROWS))
        page = min(max(1, query.page), pages)
        return Rendered(
            fill(
                "runs_list.html.jinja",
                key=self.key,
                query=query,
                rows=[_run_row(each) for each in found[(page - 1) * ROWS : page * ROWS]],
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
        "trials": "" if each.run is None or each.run.searcher == EINSUM else f"{each.run.trials:,}",
        "gain": gain,
        "kind": kind,
        "word": verdict_word(kind, objective) if objective else kind,
    }


@dataclass(frozen=True)
class CompareView(View):
    """Runs beside each other.

    Args:
        run_ids: two or more.
    """

    run_ids: tuple[str, ...] = ()
    template = "compare.html.jinja"

    def stamp(self) -> object:
        return tuple(map(self.stamp_of, self.run_ids))

    def is_over(self) -> bool:
        return not any(map(self.is_written, self.run_ids))

    def sections(self) -> Sections:
        return {"runs": self._table, "gains": self._gains, "search": self._search, "time": self._time}

    def page(self) -> Mapping[str, Any]:
        return {"count": len(self.run_ids)}

    def _followed(self) -> list[FollowedRun]:
        if len(set(self.run_ids)) < 2:
            raise PlanishError("fewer than two runs are chosen", "Tick two or more in the list of runs.")
        found = [self.followed(run_id) for run_id in self.run_ids]
        check_comparable([each.result for each in found])
        return found

    def _table(self) -> Rendered:
        found = self._followed()
        facts = [provenance(each.result, each.counts) for each in found]
        html = fill(
            "compare_runs.html.jinja",
            key=self.key,
            objective=found[0].result.objective,
            rows=[_row(each) for each in found],
            differences=differences(facts),
        )
        return Rendered(html, all(each.whole for each in found))

    def _gains(self) -> Rendered:
        found = self._followed()
        charts = figures_of([partial(compare_runs, [each.result for each in found], template=PLAIN)])
        caption = (
            "How many times better than its own baseline the best finalist of each run is, with the 95 % "
            "confidence interval. Two runs differ if their intervals do not overlap."
        )
        return _section("gains", "Gains", charts, caption, found)

    def _search(self) -> Rendered:
        from planish.plot.search import draw_history

        found = self._followed()
        results = [each.result for each in found]
        baselines = [each.baseline for each in found]
        over: Sequence[Literal["trials", "time"]] = ("trials", "time")
        charts = figures_of(
            partial(
                draw_history,
                results,
                [each.columns.curve(each.run.started if axis == "time" else None) for each in found],
                baselines,
                axis,
                PLAIN,
            )
            for axis in over
        )
        return _section("search", "Search", charts, "The best so far; thin lines are the baselines.", found)

    def _time(self) -> Rendered:
        from planish.plot.search import draw_stages

        found = self._followed()
        results = [each.result for each in found]
        times = [each.columns.stage_times(each.run.seconds) for each in found]
        of: Sequence[Literal["run", "trial"]] = ("run", "trial")
        charts = figures_of(partial(draw_stages, results, times, each, PLAIN) for each in of)
        caption = "The whole run, all workers together, and the median trial."
        return _section("time", "Time by stage", charts, caption, found)


def _section(
    name: str, heading: str, charts: Sequence[Mapping[str, Any]], caption: str, found: Sequence[FollowedRun]
) -> Rendered:
    html = fill("compare_charts.html.jinja", name=name, heading=heading, charts=charts, caption=caption)
    return Rendered(html, all(each.whole for each in found))


def _row(followed: FollowedRun) -> Mapping[str, Any]:
    result = followed.result
    unit = result.objective.unit
    best = result.comparison.contender(result.baseline_candidate) if result.comparison else None
    value = best.lead.median if best else followed.best
    return {
        "result": result,
        "verdict": followed.verdict,
        "status": followed.status,
        "failed": followed.columns.failed,
        "value": "—" if value is None else amount(value, unit),
        "gain": multiple(best.lead.gain.value) if best else "—",
        "interval": interval(best.lead.gain) if best else "—",
    }
