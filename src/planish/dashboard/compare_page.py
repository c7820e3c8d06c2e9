"""The page that compares runs of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from planish.core import PlanishError
from planish.core.wording import amount, interval, multiple
from planish.dashboard.runs import FollowedRun
from planish.dashboard.views import Rendered, Sections, View, figures_of, fill
from planish.plot import PLAIN, compare_runs
from planish.plot.runs import check_comparable
from planish.report.comparison import differences
from planish.report.page import provenance


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
