"""Figures of a search: its history, the distribution of its values, its time by stage, and its cost model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import plotly.graph_objects as go

from planish.core import Failed, Objective, Trial
from planish.core.wording import amount, duration, label
from planish.plot.axes import (
    BLUE,
    COLORS,
    COUNTS,
    DASHES,
    GREEN,
    LIGHT,
    ORANGE,
    RED,
    SHARES,
    Axes,
    Point,
    axis_of,
    bars,
    blank,
    put,
    scaled,
    span_axis,
)
from planish.plot.runs import NothingToDrawError, Results, check_choice, one_result, results_of, run_names
from planish.tuning.predictions import ModelSection, model_section
from planish.tuning.result import Result
from planish.tuning.stored_run import StageTime, by_time, stage_times, value_for, value_of

CURVE_POINTS = 2000
"""Points of a search curve at most."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Curve:
    """Curve of a search, over trials or time.

    Args:
        best: where the best value changed, and the end.
        measured: the trials; of more than `CURVE_POINTS` every so manieth.
        failed: where trials failed; of more than `CURVE_POINTS` every so manieth.
        end: where the axis ends.
    """

    best: tuple[Point, ...]
    measured: tuple[Point, ...]
    failed: tuple[float, ...]
    end: float


def by_number(trials: Sequence[Trial]) -> list[float]:
    """Return each trial's position in the run, from 1."""
    return [float(trial.index + 1) for trial in trials]


def curve(trials: Sequence[Trial], positions: Sequence[float], objective: Objective) -> Curve:
    """Return the data that is drawn of a search.

    Args:
        trials: in any order.
        positions: of the trials, by number or time.
        objective: what is improved.
    """
    ordered = sorted(zip(positions, trials, strict=True), key=lambda pair: (pair[0], pair[1].index))
    end = max(positions, default=0.0)
    measured = [(x, v) for x, t in ordered if (v := value_of(t, objective)) is not None]
    failed = [x for x, t in ordered if isinstance(t.outcome, Failed)]
    return Curve(_best(measured, objective, end), thinned(measured), thinned(failed), end)


def _best(measured: Sequence[Point], objective: Objective, end: float) -> tuple[Point, ...]:
    best = list[Point]()
    for x, value in measured:
        if not best or objective.cost(value) < objective.cost(best[-1][1]):
            best.append((x, value))
    return (*best, (end, best[-1][1])) if best else ()


def thinned(many: Sequence[_T], limit: int = CURVE_POINTS) -> tuple[_T, ...]:
    """Return every so manieth of a sequence, at most `limit` of them."""
    return tuple(many[:: -(-len(many) // limit) or 1])


def limit_of(curve: Curve, baseline: float | None, objective: Objective) -> float:
    """Return the worst value that is drawn at its position: twice the worst of the baseline and the curve.

    The few worst trials would press the curve flat.

    Args:
        curve: what is drawn.
        baseline: drawn with it; None for none.
        objective: its values should be positive; where they are not, nothing is too bad.
    """
    shown = [value for _, value in curve.best] + ([] if baseline is None else [baseline])
    worst = max(shown, key=objective.cost, default=0.0)
    down = objective.direction == "down"
    if worst <= 0:
        return math.inf if down else -math.inf
    return worst * 2 if down else worst / 2


def baseline_value(result: Result) -> float | None:
    """Return the baseline's value as the search measured it, else that of the comparison.

    The two may be of other data or of other minutes: trials stand beside what was measured as they were.
    """
    known = value_for(result.stored_trials, result.baseline_candidate, result.objective)
    if known is None and result.comparison and math.isfinite(final := result.comparison.baseline.lead.median):
        return final
    return known


def history(
    results: Results, *, over: Literal["trials", "time"] = "trials", template: str = LIGHT
) -> go.Figure:
    """Draw the history of a search: the best so far, every trial and the baseline.

    Of several runs, each has its line of the best so far, with its baseline as a thin one.

    Args:
        results: a run, or several of the same objective.
        over: the x axis: the number of trials, or seconds that the run was under way, without pauses.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: the results cannot be drawn together, or nothing was measured.
    """
    runs = results_of(results, "history")
    check_choice("over", over, ("trials", "time"))
    curves = [
        curve(each.stored_trials, by_time(each.stored_trials, each.run.started).seconds, each.objective)
        if over == "time"
        else curve(each.stored_trials, by_number(each.stored_trials), each.objective)
        for each in runs
    ]
    return draw_history(runs, curves, [baseline_value(each) for each in runs], over, template)


def draw_history(
    runs: Sequence[Result],
    curves: Sequence[Curve],
    baselines: Sequence[float | None],
    over: Literal["trials", "time"],
    template: str,
) -> go.Figure:
    """Draw what `history` does, of curves; the trials of the runs are not read.

    Args:
        runs: of the same objective.
        curves: one for each.
        baselines: the baseline's value for each; None where it is not known.
        over: the x axis of the curves.
        template: see `history`.

    Raises:
        NothingToDrawError: nothing was measured.
    """
    if not any(each.best for each in curves):
        raise NothingToDrawError(_unmeasured(runs), "See 'planish show' for how its candidates failed.")
    draw = _one_history if len(runs) == 1 else _histories
    end = max(each.end for each in curves)
    across = span_axis(end) if over == "time" else axis_of([end], "")
    figure = draw(blank(template, 360), across, runs, curves, baselines)
    figure.update_layout(
        xaxis={
            **scaled(across, "time" if over == "time" else "trials"),
            "range": [0, end * across.factor * 1.02 or 1],
        }
    )
    return figure


def _unmeasured(runs: Sequence[Result]) -> str:
    ids = ", ".join(each.run.id for each in runs)
    return f"{'run' if len(runs) == 1 else 'runs'} {ids}: no candidate was measured"


def _one_history(
    figure: go.Figure,
    across: Any,
    runs: Sequence[Result],
    curves: Sequence[Curve],
    baselines: Sequence[float | None],
) -> go.Figure:
    (result,), (found,), (baseline,) = runs, curves, baselines
    objective = result.objective
    limit = limit_of(found, baseline, objective)
    good = [(x, v) for x, v in found.measured if objective.cost(v) <= objective.cost(limit)]
    bad = [(x, limit) for x, v in found.measured if objective.cost(v) > objective.cost(limit)]
    level = [] if baseline is None else [(0.0, baseline), (found.end, baseline)]
    up = axis_of((v for _, v in (*good, *bad, *found.best, *level)), objective.unit)
    axes = Axes(figure, across, up)
    axes.marks(good, "trials", color=BLUE, opacity=0.6, size=5)
    symbol, than = ("triangle-up", "over") if objective.direction == "down" else ("triangle-down", "under")
    off: dict[str, Any] = {"color": BLUE, "opacity": 0.6, "size": 7, "symbol": f"{symbol}-open"}
    axes.marks(bad, f"{than} {amount(limit, objective.unit)}", **off)
    _crosses(axes, found.failed)
    name = "" if baseline is None else f"baseline {amount(baseline, objective.unit)}"
    axes.line(level, name, color=ORANGE, dash="dash")
    axes.line(found.best, "best so far", color=GREEN, shape="hv")
    figure.update_layout(
        xaxis={"anchor": "y2"},
        yaxis={**scaled(up, label(objective)), "domain": [0.09, 1]},
        yaxis2={"domain": [0, 0.05], "range": [-1, 1], "visible": False, "fixedrange": True},
    )
    return figure


def _crosses(axes: Axes, failed: Sequence[float]) -> None:
    if failed:
        axes.figure.add_scatter(
            x=put(failed, axes.across),
            y=put([0.0] * len(failed), axes.up),
            yaxis="y2",
            mode="markers",
            name="failed",
            marker={"symbol": "x-thin", "size": 7, "line": {"width": 1.5, "color": RED}},
            hovertemplate="%{x:.6~g} failed<extra></extra>",
        )


def _histories(
    figure: go.Figure,
    across: Any,
    runs: Sequence[Result],
    curves: Sequence[Curve],
    baselines: Sequence[float | None],
) -> go.Figure:
    values = [value for each in curves for _, value in each.best] + [v for v in baselines if v is not None]
    objective = runs[0].objective
    axes = Axes(figure, across, axis_of(values, objective.unit))
    for index, (name, found, baseline) in enumerate(zip(run_names(runs), curves, baselines, strict=True)):
        color, dash = COLORS[index % len(COLORS)], DASHES[index % len(DASHES)]
        axes.line(found.best, name, color=color, dash=dash, shape="hv")
        if baseline is not None:
            axes.line([(0.0, baseline), (found.end, baseline)], "", color=color, width=1, dash=dash)
            figure.data[-1].update(hovertemplate=f"baseline of {name}: {amount(baseline, objective.unit)}")
    figure.update_layout(yaxis=scaled(axes.up, f"best {label(objective)} so far"))
    return figure


def distribution(results: Results, *, template: str = LIGHT) -> go.Figure:
    """Draw the share of a run's trials that are at least as good as each value.

    What failed is never reached: a line ends at the share of trials that were measured.

    Args:
        results: a run, or several of the same objective.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: the results cannot be drawn together, or nothing was measured.
    """
    runs = results_of(results, "distribution")
    objective = runs[0].objective
    found = [_shares(each.stored_trials, objective) for each in runs]
    baselines = [baseline_value(each) for each in runs]
    # The worst few would press the others together; they lie beyond the chart.
    near = [value for points in found for value, share in points if share <= _SHOWN_SHARE]
    if not any(found):
        raise NothingToDrawError(_unmeasured(runs), "See 'planish show' for how its candidates failed.")
    shown = [*near, *(points[0][0] for points in found if points), *(b for b in baselines if b is not None)]
    axes = Axes(blank(template, 320), axis_of(shown, objective.unit), SHARES)
    names = ["trials"] if len(runs) == 1 else run_names(runs)
    for index, (name, points, baseline) in enumerate(zip(names, found, baselines, strict=True)):
        color, dash = COLORS[index % len(COLORS)], DASHES[index % len(DASHES)]
        axes.line(points, name, color=color, dash=dash, shape="hv")
        if baseline is not None:
            alone = len(runs) == 1
            text = f"baseline {amount(baseline, objective.unit)}" if alone else ""
            axes.line(
                [(baseline, 0.0), (baseline, 1.0)],
                text,
                color=ORANGE if alone else color,
                dash="dash",
                width=1,
            )
    better = "at most" if objective.direction == "down" else "at least"
    axes.name_axes(label(objective), f"trials with {better} this {label(objective)}")
    low, high = put([min(shown), max(shown)], axes.across)
    if axes.across.log:
        low, high = math.log10(low), math.log10(high)
    margin = (high - low) / 30 or 0.5
    axes.figure.update_layout(xaxis={"range": [low - margin, high + margin]}, yaxis={"range": [0, 102]})
    return axes.figure


_SHOWN_SHARE = 0.95


def _shares(trials: Sequence[Trial], objective: Objective) -> list[Point]:
    """Return the values from the best to the worst, each with the share of all trials up to it."""
    values = sorted((v for t in trials if (v := value_of(t, objective)) is not None), key=objective.cost)
    points = [(value, rank / len(trials)) for rank, value in enumerate(values, 1)]
    return [*points[:1], *thinned(points[1:-1]), *points[1:][-1:]]


def stages(results: Results, *, of: Literal["run", "trial"] = "run", template: str = LIGHT) -> go.Figure:
    """Draw the time by stage, such as building and running.

    Args:
        results: a run, or several.
        of: the seconds of the whole run, all workers together, or those of the median trial.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: the results cannot be drawn together, or no time is known yet.
    """
    runs = results_of(results, "stages")
    check_choice("of", of, ("run", "trial"))
    return draw_stages(
        runs, [stage_times(each.stored_trials, each.run.seconds) for each in runs], of, template
    )


def draw_stages(
    runs: Sequence[Result],
    times: Sequence[Sequence[StageTime]],
    of: Literal["run", "trial"],
    template: str,
) -> go.Figure:
    """Draw what `stages` does, of times; the trials of the runs are not read.

    Args:
        runs: what the times are of.
        times: by stage, for each run.
        of: see `stages`.
        template: see `stages`.

    Raises:
        NothingToDrawError: there are none.
    """
    tables = [_stage_seconds(each, of) for each in times]
    names = list(dict.fromkeys(stage for table in tables for stage in table))
    if not names:
        ids = ", ".join(each.run.id for each in runs)
        raise NothingToDrawError(f"no time is known yet of {ids}", "Wait until a trial has ended.")
    title = "time of the run" if of == "run" else "median time of a trial"
    longest = max(seconds for table in tables for seconds in table.values())
    across = span_axis(longest)
    if len(runs) == 1:
        rows = list(tables[0].items())
        color = BLUE if of == "run" else GREEN
        return bars(template, rows, title, across, [duration(s) for _, s in rows], marker={"color": color})
    figure = blank(template, 90 + 20 * len(names) * len(runs))
    for index, (name, table) in enumerate(zip(run_names(runs), tables, strict=True)):
        seconds = [table.get(stage, 0.0) for stage in names]
        figure.add_bar(
            orientation="h",
            x=put(seconds, across),
            y=names,
            name=name,
            text=[duration(value) for value in seconds],
            textposition="outside",
            cliponaxis=False,
            marker={"color": COLORS[index % len(COLORS)]},
            hovertemplate="%{y}: %{text}",
        )
    figure.update_layout(
        barmode="group",
        xaxis={**scaled(across, title), "range": [0, longest * across.factor * 1.2 or 1]},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category", "ticksuffix": " "},
    )
    return figure


def _stage_seconds(found: Sequence[StageTime], of: Literal["run", "trial"]) -> Mapping[str, float]:
    if of == "run":
        return {each.stage: each.total_s for each in found}
    return {each.stage: each.median_s for each in found if each.median_s is not None}


def predictions(result: Result, *, template: str = LIGHT) -> go.Figure:
    """Draw what was measured over the rank that the model predicted in each batch.

    Args:
        result: of a run that a cost model guided.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: it is not a result, or no model guided it.
    """
    section = _section(result, "predictions")
    *earlier, last = [batch for batch in section.batches if batch.values]
    values = [value for batch in section.batches for value in batch.values]
    axes = Axes(blank(template, 320), SHARES, axis_of(values, result.objective.unit))
    before = [pair for batch in earlier for pair in zip(batch.predicted_ranks, batch.values, strict=True)]
    axes.marks(thinned(before), "earlier batches", color=BLUE, opacity=0.5, size=5)
    axes.marks(
        thinned([*zip(last.predicted_ranks, last.values, strict=True)]),
        "the last batch",
        color=GREEN,
        size=7,
        symbol="diamond",
    )
    axes.name_axes("predicted rank in its batch, 0 % is the best", f"measured {label(result.objective)}")
    return axes.figure


def rank_correlation(result: Result, *, template: str = LIGHT) -> go.Figure:
    """Draw the rank correlation of each batch's predictions with what was measured, as the model learns.

    Args:
        result: of a run that a cost model guided.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: it is not a result, or no model guided it.
    """
    section = _section(result, "rank_correlation")
    points = thinned([(float(batch.before), batch.correlation) for batch in section.batches])
    axes = Axes(blank(template, 260), axis_of([x for x, _ in points], ""), COUNTS)
    axes.line([(0.0, 0.0), (points[-1][0], 0.0)], "chance", color=ORANGE, dash="dash")
    axes.line(points, "rank correlation with the next batch", color=GREEN)
    axes.figure.data[-1].update(mode="lines+markers", marker={"size": 7, "color": GREEN})
    axes.name_axes("trials learned from", "rank correlation")
    axes.figure.update_layout(yaxis={"range": [-1.05, 1.05]})
    return axes.figure


def _section(result: Result, function: str) -> ModelSection:
    result = one_result(result, function)
    section = model_section(result)
    if section is None or not any(batch.values for batch in section.batches):
        what = f"no cost model guided run {result.run.id}, which searched by '{result.run.searcher}'"
        raise NothingToDrawError(what, 'Use searcher="model-guided".')
    return section
