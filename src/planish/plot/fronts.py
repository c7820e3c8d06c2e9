"""Figures of several objectives: the Pareto front, as searched and as measured again, and its hypervolume."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from planish.core import Candidate, Objective, PlanishError, Step, Trial, did_you_mean
from planish.core.front import HypervolumeTracker, front_of, growth_of
from planish.core.wording import label
from planish.plot.axes import (
    BLUE,
    COLORS,
    COUNTS,
    GREEN,
    LIGHT,
    ORANGE,
    PURPLE,
    RED,
    Axes,
    Point,
    axis_of,
    blank,
)
from planish.plot.runs import NothingToDrawError, Results, one_result, results_of, run_names
from planish.plot.search import thinned
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.result import Result

UNSEEN = "final"
"""The score on data that is opened at the very end is named after it: `error_final`."""

_LINES = 12
_LINE_CHARACTERS = 90
_ALL_LINES = 600
"""Lines of all hover labels of a front, which hold most of a figure's characters."""


@dataclass(frozen=True)
class Dot:
    """Point in a trade-off: a side of the comparison.

    Args:
        name: of the side.
        at: by both objectives.
        unseen: the same, but the second on data that the search did not see; None where that is not known.
        hover: text of its hover label: the steps.
        differs: the cross-check differs.
    """

    name: str
    at: Point
    unseen: Point | None
    hover: str
    differs: bool = False


@dataclass(frozen=True)
class Remeasured:
    """All that is drawn of it.

    Args:
        members: of the front.
        baseline: what they are compared with.
        secondary_baseline: another baseline; None where there is none.
    """

    members: tuple[Dot, ...]
    baseline: Dot
    secondary_baseline: Dot | None


def remeasured(front: Comparison, x: Objective, y: Objective) -> Remeasured:
    """Locate a front in the chart of two objectives."""
    return Remeasured(
        tuple(_dot(member, x, y) for member in front.finalists),
        _dot(front.baseline, x, y),
        _dot(front.secondary_baseline, x, y) if front.secondary_baseline else None,
    )


def _dot(member: Compared, x: Objective, y: Objective) -> Dot:
    across, score = member.measured[x.name].median, member.scores.get(f"{y.name}_{UNSEEN}")
    unseen = None if score is None else (across, score)
    steps = step_lines(member.candidate) if isinstance(member, Finalist) else ""
    at = across, member.measured[y.name].median
    return Dot(member.name, at, unseen, steps, member.cross_check.agrees is False)


def step_lines(candidate: Candidate, limit: int = _LINES) -> str:
    """List a candidate's first steps for a hover label, in plotly's markup."""
    lines = [_step_line(number, step) for number, step in enumerate(candidate.steps[:limit], 1)]
    more = len(candidate.steps) - limit
    return "<br>".join([*(lines or ["unchanged"]), *([f"and {more} more"] if more > 0 else [])])


def _step_line(number: int, step: Step) -> str:
    text = str(step)
    return html.escape(
        f"{number}. {text if len(text) <= _LINE_CHARACTERS else text[: _LINE_CHARACTERS - 1] + '…'}"
    )


def dots_of(found: Remeasured) -> Sequence[Point]:
    """List every position that is drawn."""
    dots = (*found.members, found.baseline, *([found.secondary_baseline] if found.secondary_baseline else []))
    return [point for dot in dots for point in (dot.at, dot.unseen) if point is not None]


TRADEOFF_POINTS = 2000
"""Points drawn at most, those on the front apart."""

_FRONT_MARKS = 500


@dataclass(frozen=True)
class Tradeoff:
    """Two objectives, one over the other.

    Args:
        x: the leading objective.
        y: another.
        points: every measured trial; of more than `TRADEOFF_POINTS`, every so manieth.
        front: those that no trial beats in all objectives of the task, by x.
        hover: text of the hover label of each on the front.
        finalists: what was measured again at the end, by its values in the search.
        baseline: None where the search did not measure it.
        again: the same front as measured again at the end; None where it was not.
    """

    x: Objective
    y: Objective
    points: tuple[Point, ...]
    front: tuple[Point, ...]
    hover: tuple[str, ...]
    finalists: tuple[Point, ...]
    baseline: Point | None
    again: Remeasured | None = None


def tradeoffs(
    trials: Sequence[Trial],
    objectives: Sequence[Objective],
    finalists: Sequence[Candidate],
    baseline: Candidate | None,
    again: Comparison | None = None,
) -> list[Tradeoff]:
    """Set each further objective against the leading one.

    Args:
        trials: of the run.
        objectives: of the task.
        finalists: to be marked.
        baseline: to be marked; None where it is not known.
        again: the front as measured again at the end.
    """
    measured = [(t.candidate, c) for t in trials if (c := t.costs(objectives)) is not None]
    known = [(candidate.hash, _values(costs, objectives)) for candidate, costs in measured]
    front = front_of([c for _, c in measured])
    lines = min(_LINES, max(1, _ALL_LINES // max(1, len(front))))
    best = [(known[index][1], step_lines(measured[index][0], lines)) for index in front]
    by_hash = dict(known)
    kept = thinned([values for _, values in known], TRADEOFF_POINTS)
    marked = [by_hash[c.hash] for c in finalists if c.hash in by_hash]
    start = by_hash.get(baseline.hash) if baseline else None

    def pair(values: Sequence[float], other: int) -> Point:
        return values[0], values[other]

    def against(n: int) -> Tradeoff:
        shown = sorted((pair(values, n), hover) for values, hover in best)
        return Tradeoff(
            objectives[0],
            objectives[n],
            tuple(pair(v, n) for v in kept),
            tuple(point for point, _ in shown),
            tuple(hover for _, hover in shown),
            tuple(pair(v, n) for v in marked),
            pair(start, n) if start else None,
            remeasured(again, objectives[0], objectives[n]) if again else None,
        )

    return [against(n) for n in range(1, len(objectives)) if known]


def _values(costs: Sequence[float], objectives: Sequence[Objective]) -> list[float]:
    """Return values for costs: turned over twice, a value is itself again."""
    return [o.cost(cost) for o, cost in zip(objectives, costs, strict=True)]


def pareto_front(results: Results, *, against: str | None = None, template: str = LIGHT) -> go.Figure:
    """Draw one objective over another: all that was measured, the front, and the front as measured again.

    What is worse than everything of interest, by more than half, lies beyond the chart. Of several runs, each
    has its front as the search measured it.

    Args:
        results: a run with several objectives, or several such runs.
        against: the objective on the y axis; without any it is the second one. The first is on the x axis.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: the results cannot be drawn together, have one objective only, or nothing was measured.
    """
    runs = results_of(results, "pareto_front")
    other = _other_objective(runs, against)
    found = [(each, _tradeoff_by(each, other)) for each in runs]
    drawn = [(result, tradeoff) for result, tradeoff in found if tradeoff is not None]
    if not drawn:
        ids = ", ".join(each.run.id for each in runs)
        raise NothingToDrawError(f"{ids}: no candidate was measured by all objectives", "")
    if len(runs) == 1:
        return _draw_front(drawn[0][1], joined=len(runs[0].stored.objectives) == 2, template=template)
    return _draw_fronts([result for result, _ in drawn], [tradeoff for _, tradeoff in drawn], template)


def _other_objective(runs: Sequence[Result], against: str | None) -> Objective:
    for each in runs:
        if len(each.stored.objectives) < 2:
            what = f"run {each.run.id} has one objective, {each.objective.name}, so it has no front"
            raise NothingToDrawError(what, "Tune by several, such as time and error.")
    others = {o.name: o for o in runs[0].stored.objectives[1:]}
    name = against or next(iter(others))
    for each in runs:
        if name not in (known := [o.name for o in each.stored.objectives[1:]]):
            hint = did_you_mean(name, known)
            raise PlanishError(f"run {each.run.id} has no further objective '{name}'", hint)
    return others[name]


def _tradeoff_by(result: Result, other: Objective) -> Tradeoff | None:
    finalists = [each.candidate for each in result.finalists]
    found = tradeoffs(
        result.stored_trials, result.stored.objectives, finalists, result.baseline_candidate, result.front
    )
    return next((each for each in found if each.y == other), None)


def _draw_fronts(runs: Sequence[Result], found: Sequence[Tradeoff], template: str) -> go.Figure:
    points = [point for each in found for point in (*each.front, *([each.baseline] if each.baseline else []))]
    across, up = zip(*points, strict=True)
    x, y = found[0].x, found[0].y
    axes = Axes(blank(template, 520), axis_of(across, x.unit), axis_of(up, y.unit))
    symbols = ("circle", "square", "triangle-up", "pentagon", "hexagram")
    for index, (name, each) in enumerate(zip(run_names(runs), found, strict=True)):
        color, symbol = COLORS[index % len(COLORS)], symbols[index % len(symbols)]
        shape = "hv" if x.direction == "down" else "vh"
        axes.line(thinned(each.front), "", color=color, width=1, shape=shape)
        marked, hover = thinned(each.front, _FRONT_MARKS), thinned(each.hover, _FRONT_MARKS)
        axes.marks(marked, name, hover, color=color, size=8, symbol=symbol)
        if each.baseline:
            axes.marks([each.baseline], f"baseline of {name}", color=color, size=12, symbol="diamond-open")
    axes.name_axes(label(x), label(y))
    return axes.figure


def _draw_front(tradeoff: Tradeoff, *, joined: bool, template: str) -> go.Figure:
    """Draw the front of a run; with more than two objectives it is not a line, which `joined` draws."""
    start = [] if tradeoff.baseline is None else [tradeoff.baseline]
    again = tradeoff.again
    shown = [*tradeoff.front, *start, *(dots_of(again) if again else [])]
    limits = [_limit([point[side] for point in shown]) for side in (0, 1)]
    points = [p for p in tradeoff.points if p[0] <= limits[0] and p[1] <= limits[1]]
    across, up = zip(*points, *shown, strict=True)
    axes = Axes(blank(template, 520), axis_of(across, tradeoff.x.unit), axis_of(up, tradeoff.y.unit))
    axes.marks(points, "trials", color=BLUE, opacity=0.35, size=5)
    if joined:
        shape = "hv" if tradeoff.x.direction == "down" else "vh"
        axes.line(thinned(tradeoff.front), "", color=BLUE, shape=shape)
    marked, hover = thinned(tradeoff.front, _FRONT_MARKS), thinned(tradeoff.hover, _FRONT_MARKS)
    axes.marks(marked, "front of the search", hover, color=BLUE, size=8)
    if again is None:
        circle: dict[str, Any] = {"symbol": "circle-open", "size": 15, "color": GREEN, "line": {"width": 2}}
        axes.marks(tradeoff.finalists, "finalists", **circle)
        axes.marks(start, "baseline", symbol="diamond", size=13, color=ORANGE)
    else:
        axes.marks(start, "baseline in the search", symbol="diamond", size=8, color=ORANGE)
        _draw_again(axes, again, label(tradeoff.y))
    axes.name_axes(label(tradeoff.x), label(tradeoff.y))
    return axes.figure


def _limit(values: Sequence[float]) -> float:
    """Return where the chart ends."""
    high = max(values)
    return high + abs(high) / 2


def _draw_again(axes: Axes, again: Remeasured, name: str) -> None:
    """Draw what was measured again: by the search's data filled, by the final data open."""
    members, others = again.members, [("baseline", again.baseline, "diamond", ORANGE)]
    if again.secondary_baseline is not None:
        others.append((again.secondary_baseline.name, again.secondary_baseline, "star", PURPLE))
    for dot in (*members, again.baseline):
        if dot.unseen is not None:
            axes.line([dot.at, dot.unseen], "", color=ORANGE if dot is again.baseline else GREEN, width=1)
    won, lost = ([d for d in members if d.differs is differs] for differs in (False, True))
    axes.marks(
        [d.at for d in won], f"measured again: {name} in the search", _hover_texts(won), color=GREEN, size=9
    )
    axes.marks(
        [d.at for d in lost], "the cross-check differs", _hover_texts(lost), color=RED, size=9, symbol="x"
    )
    seen = [d for d in members if d.unseen is not None]
    opened: dict[str, Any] = {"symbol": "circle-open", "size": 10, "color": GREEN, "line": {"width": 2}}
    axes.marks(
        [d.unseen for d in seen if d.unseen], f"{name} on the {UNSEEN} data", _hover_texts(seen), **opened
    )
    for title, dot, symbol, color in others:
        axes.marks([dot.at], title, symbol=symbol, size=14, color=color)
        if dot.unseen is not None:
            style: dict[str, Any] = {
                "symbol": f"{symbol}-open",
                "size": 14,
                "color": color,
                "line": {"width": 2},
            }
            axes.marks([dot.unseen], f"{title}, {UNSEEN} data", **style)


def _hover_texts(dots: Sequence[Dot]) -> list[str]:
    return [f"<b>{dot.name}</b><br>{dot.hover}" for dot in dots]


def hypervolume(result: Result, *, template: str = LIGHT) -> go.Figure:
    """Draw the hypervolume of the front over evaluations, in units of what the baseline alone has.

    Args:
        result: of a run with several objectives, whose baseline was measured.
        template: "planish", "planish_dark" or one of Plotly's own; "none" takes the page's background.

    Raises:
        PlanishError: it is not a result, or its hypervolume is not known.
    """
    result = one_result(result, "hypervolume")
    _other_objective([result], None)
    growth = growth_of(result.stored_trials, result.stored.objectives, result.baseline_candidate)
    return draw_hypervolume(result, growth, template)


def draw_hypervolume(result: Result, growth: HypervolumeTracker, template: str) -> go.Figure:
    """Draw the hypervolume of a front, as `hypervolume` does.

    Args:
        result: of the run.
        growth: of its front so far.
        template: as for `hypervolume`.

    Raises:
        NothingToDrawError: the baseline was not measured.
    """
    if growth.volume is None:
        what = f"the hypervolume of run {result.run.id} is not known: its baseline was not measured"
        raise NothingToDrawError(what, "")
    points = [
        *((float(at), value) for at, value in thinned(growth.volumes)),
        (float(growth.evaluations), growth.volume),
    ]
    axes = Axes(blank(template, 300), axis_of([growth.evaluations], ""), COUNTS)
    axes.line([(0.0, 1.0), (points[-1][0], 1.0)], "baseline", color=ORANGE, dash="dash")
    axes.line(points, "hypervolume of the front", color=GREEN, shape="hv")
    axes.name_axes("evaluations", "hypervolume (baseline 1)")
    return axes.figure
