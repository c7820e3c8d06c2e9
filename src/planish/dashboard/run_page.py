"""The page of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

from planish.core import Trial
from planish.core.front import front_of
from planish.core.wording import words
from planish.dashboard.runs import FollowedRun
from planish.dashboard.views import ROWS, Rendered, Sections, View, figures_of, fill
from planish.plot import PLAIN
from planish.report.page import FINALISTS, GROWTH, effect_grids, front_table, provenance, repeat
from planish.tuning.result import Result
from planish.tuning.stored_run import MEANING, flops_of

_TEXT_MAX = 200_000
_DETAIL_MAX = 4_000
_STEPS_MAX = 20_000
_CAUSES_MAX = 50
_SAMPLED = 400
"""Trials whose steps are drawn."""


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

    run_id: str = ""
    query: TrialsQuery = TrialsQuery()
    template = "run.html.jinja"
    first = ("summary", "trials")
    slow = ("steps",)
    shares: ClassVar[Mapping[str, float]] = {"summary": 0.75, "trials": 0.12, "search": 0.08}

    def stamp(self) -> object:
        return self.stamp_of(self.run_id)

    def is_over(self) -> bool:
        return not self.is_written(self.run_id)

    def sections(self) -> Sections:
        return {
            "summary": self._summary,
            "search": self._search,
            "comparison": self._comparison,
            "front": self._front,
            "trials": self._trials,
            "failures": self._failures,
            "steps": self._steps,
            "time": self._time,
            "winner": self._winner,
            "provenance": self._provenance,
        }

    def _render(self, template: str, followed: FollowedRun, **contents: Any) -> Rendered:
        result = followed.result
        shared: dict[str, Any] = {
            "key": self.key,
            "result": result,
            "run": result.run,
            "status": followed.status,
            "objective": result.objective,
            "comparison": result.comparison,
            "interim": followed.interim,
            "front": front_table(result.front) if result.front else None,
            "columns": followed.columns,
            "tried": len(followed.columns),
            "failed": followed.columns.failed,
            "whole": followed.whole,
            "text_max": _TEXT_MAX,
            "detail_max": _DETAIL_MAX,
            "steps_max": _STEPS_MAX,
        }
        return Rendered(fill(template, **shared, **contents), followed.whole)

    def _summary(self) -> Rendered:
        followed = self.followed(self.run_id)
        return self._render(
            "run_summary.html.jinja",
            followed,
            verdict=followed.verdict,
            best=followed.best,
        )

    def _search(self) -> Rendered:
        from planish.plot.search import draw_history

        followed = self.followed(self.run_id)
        result, columns = followed.result, followed.columns
        axes: Mapping[Literal["trials", "time"], float | None] = {
            "trials": None,
            "time": result.run.started,
        }
        charts = figures_of(
            partial(draw_history, [result], [columns.curve(since)], [followed.baseline], over, PLAIN)
            for over, since in axes.items()
        )
        return self._render("run_search.html.jinja", followed, charts=charts)

    def _comparison(self) -> Rendered:
        from planish import plot

        followed = self.followed(self.run_id)
        result = followed.result
        draws = (partial(draw, result, template=PLAIN) for draw in (plot.comparison, plot.samples))
        return self._render(
            "run_comparison.html.jinja",
            followed,
            charts={"finalists": figures_of(draws) if result.comparison else []},
            captions={"finalists": FINALISTS},
            flops=flops_of(result.best_trial, result.objective) if result.comparison else None,
            words=words(result.objective),
        )

    def _front(self) -> Rendered:
        from planish import plot
        from planish.plot.fronts import draw_hypervolume

        followed = self.followed(self.run_id)
        result, columns = followed.result, followed.columns
        others = [objective.name for objective in result.stored.objectives[1:]]
        if columns.growth is None:
            return Rendered('<section id="front" hidden></section>')
        costs = columns.costs()
        front = {costs[position][0] for position in front_of([each for _, each in costs])}
        shown = front | set(_evenly(columns.select("measured", "best").tolist()))
        drawn = self._with_trials(result, sorted(shown))
        found = result.front
        grids = [effect_grids(each, found.objectives) for each in found.finalists] if found else []
        return self._render(
            "run_front.html.jinja",
            followed,
            charts=figures_of(partial(plot.pareto_front, drawn, against=o, template=PLAIN) for o in others),
            growth=figures_of([partial(draw_hypervolume, result, columns.growth, PLAIN)]),
            growth_caption=GROWTH,
            grids=grids,
        )

    def _steps(self) -> Rendered:
        from planish import plot

        followed = self.followed(self.run_id)
        ranked = followed.columns.select("measured", "best").tolist()
        drawn = self._with_trials(followed.result, _evenly(ranked))
        draws = (
            partial(draw, drawn, template=PLAIN) for draw in (plot.parallel_coordinates, plot.importances)
        )
        return self._render("run_steps.html.jinja", followed, charts=figures_of(draws))

    def _with_trials(self, result: Result, indices: Sequence[int]) -> Result:
        """Return a result with some of its trials."""
        found: Sequence[Trial] = self.runs.source.reader.trials_at(self.run_id, indices, result.level.steps)
        kept = {"level", "baseline_candidate", "best_trial"} & vars(result).keys()
        known: dict[str, Any] = {name: vars(result)[name] for name in kept}
        return replace(result).at_hand(stored_trials=found, **known)

    def _trials(self) -> Rendered:
        followed = self.followed(self.run_id)
        columns, query = followed.columns, self.query
        chosen = columns.select(query.outcome, query.order)
        pages = max(1, -(-len(chosen) // ROWS))
        page = min(max(1, query.page), pages)
        shown = chosen[(page - 1) * ROWS : page * ROWS].tolist()
        found = self.runs.source.reader.trials_at(self.run_id, shown, columns.steps)
        by_index = {trial.index: trial for trial in found}
        objectives = followed.result.stored.objectives
        return self._render(
            "run_trials.html.jinja",
            followed,
            query=query,
            rows=[by_index[index] for index in shown if index in by_index],
            objectives=objectives,
            several_hosts=len(columns.sources.hosts) > 1,
            several_clients=len(columns.sources.clients) > 1,
            count=len(chosen),
            page=page,
            pages=pages,
        )

    def _failures(self) -> Rendered:
        followed = self.followed(self.run_id)
        groups = followed.columns.failure_groups()
        return self._render(
            "failures.html.jinja",
            followed,
            failures=groups[:_CAUSES_MAX],
            other_failures=sum(group.count for group in groups[_CAUSES_MAX:]),
        )

    def _time(self) -> Rendered:
        from planish.plot.search import draw_stages

        followed = self.followed(self.run_id)
        stages = followed.columns.stage_times(followed.run.seconds)
        of: Sequence[Literal["run", "trial"]] = ("run", "trial")
        bars = (partial(draw_stages, [followed.result], [stages], each, PLAIN) for each in of)
        return self._render(
            "run_time.html.jinja",
            followed,
            stages=stages,
            charts={"time": figures_of(bars)},
            captions={"time": "The whole run, all workers together, and the median trial."},
            meaning=MEANING,
        )

    def _winner(self) -> Rendered:
        return self._render("run_winner.html.jinja", self.followed(self.run_id))

    def _provenance(self) -> Rendered:
        followed = self.followed(self.run_id)
        return self._render(
            "provenance.html.jinja",
            followed,
            provenance=provenance(followed.result, followed.counts),
            repeat=repeat(followed.result),
        )


def _evenly(many: Sequence[int]) -> Sequence[int]:
    """Return every so manieth, at most `_SAMPLED`."""
    return many[:: -(-len(many) // _SAMPLED) or 1]
