"""Points of the report's charts: search curve, box plots of samples, trade-offs of two objectives."""

from __future__ import annotations

import html
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from planish.core import Candidate, Failed, Objective, Step, Trial, front_of
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.trial_statistics import value_of

PAUSE_S = 60.0
"""When nothing ended for longer, beyond the next trial's own work, the run was not under way."""

CURVE_POINTS = 2000
"""Points of a search curve at most."""

Point = tuple[float, float]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Curve:
    """Curve of a search, over trials or time.

    Args:
        best: where the best value changed, and the end.
        measured: the trials; of more than `MOST` every so manieth.
        failed: where trials failed; of more than `MOST` every so manieth.
        end: where the axis ends.
    """

    best: tuple[Point, ...]
    measured: tuple[Point, ...]
    failed: tuple[float, ...]
    end: float


def by_number(trials: Sequence[Trial]) -> list[float]:
    """Return each trial's position in the run, from 1."""
    return [float(trial.index + 1) for trial in trials]


@dataclass(frozen=True)
class Timeline:
    """Times at which trials ended.

    Args:
        seconds: that the run had been under way, by trial.
        paused: seconds left out, because the run was not under way.
    """

    seconds: tuple[float, ...]
    paused: float


def by_time(trials: Sequence[Trial], started: float) -> Timeline:
    """Return the seconds that the run had been under way when each trial ended.

    A run may be taken up again days later: its pauses are left out. What was taken from the store
    cost nothing, so it has the time of the trial before it.

    Args:
        trials: by index.
        started: seconds since the epoch.
    """
    spent, paused = _spent(trials, started)
    seconds, latest = list[float](), 0.0
    for trial in trials:
        latest = spent.get(trial.index, latest)
        seconds.append(latest)
    return Timeline(tuple(seconds), paused)


def _spent(trials: Sequence[Trial], started: float) -> tuple[Mapping[int, float], float]:
    """Return the seconds under way by trial index, and those of the pauses."""
    spent, last, total, paused = dict[int, float](), started, 0.0, 0.0
    for trial in sorted((t for t in trials if not t.cached), key=lambda t: t.time):
        work, gap = sum(trial.seconds.values()), max(0.0, trial.time - last)
        pause = gap - work if gap > work + PAUSE_S else 0.0
        total, paused = total + gap - pause, paused + pause
        spent[trial.index], last = total, max(last, trial.time)
    return spent, paused


def curve(trials: Sequence[Trial], positions: Sequence[float], objective: Objective) -> Curve:
    """Work out what is drawn.

    Args:
        trials: in any order.
        positions: of the trials, by number or time.
        objective: what is improved.
    """
    ordered = sorted(zip(positions, trials, strict=True), key=lambda pair: (pair[0], pair[1].index))
    end = max(positions, default=0.0)
    measured = [(x, v) for x, t in ordered if (v := value_of(t, objective)) is not None]
    failed = [x for x, t in ordered if isinstance(t.outcome, Failed)]
    return Curve(_best(measured, objective, end), _thinned(measured), _thinned(failed), end)


def _best(measured: Sequence[Point], objective: Objective, end: float) -> tuple[Point, ...]:
    best = list[Point]()
    for x, value in measured:
        if not best or objective.cost(value) < objective.cost(best[-1][1]):
            best.append((x, value))
    return (*best, (end, best[-1][1])) if best else ()


def _thinned(many: Sequence[_T]) -> tuple[_T, ...]:
    return tuple(many[:: -(-len(many) // CURVE_POINTS) or 1])


def limit_of(curve: Curve, baseline: float | None, objective: Objective) -> float:
    """Return what is too bad to be drawn in its position: twice as bad as the baseline and the first best.

    A few dreadful trials would press the curve flat.

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


SAMPLE_POINTS = 200
"""Points drawn of one sample at most."""

_GOLDEN = 0.6180339887498949


@dataclass(frozen=True)
class Box:
    """A sample in five numbers (Tukey's box plot).

    Args:
        quartiles: the lower one, the median, the upper one.
        whiskers: the farthest samples within 1.5 times the box's length.
    """

    quartiles: tuple[float, float, float]
    whiskers: tuple[float, float]


@dataclass(frozen=True)
class ChartRow:
    """One line of the chart.

    Args:
        name: of the side that the samples are of.
        box: of all of them.
        points: sorted; of many, evenly many of all parts, and both ends; none outside the window.
        jitter: a position for each point across the line, from 0 to 1.
        beyond: how many lie outside the window.
        count: how many there are.
    """

    name: str
    box: Box
    points: tuple[float, ...]
    jitter: tuple[float, ...]
    beyond: int
    count: int


@dataclass(frozen=True)
class Strip:
    """The chart.

    Args:
        rows: the sides that have samples.
        window: the range that holds all whiskers and some more. A machine's hiccups lie far beyond, and
            would press the boxes flat.
    """

    rows: tuple[ChartRow, ...]
    window: tuple[float, float]


def strip_of(samples: Mapping[str, Sequence[float]]) -> Strip | None:
    """Work out what is drawn of the finite samples of all sides, by name; None for none."""
    finite = {name: sorted(v for v in known if math.isfinite(v)) for name, known in samples.items()}
    boxes = {name: _box(known) for name, known in finite.items() if known}
    if not boxes:
        return None
    window = _window(list(boxes.values()))
    return Strip(tuple(_row(name, box, finite[name], window) for name, box in boxes.items()), window)


def _box(known: Sequence[float]) -> Box:
    lower, middle, upper = (
        statistics.quantiles(known, n=4, method="inclusive") if len(known) > 1 else (known[0],) * 3
    )
    reach = 1.5 * (upper - lower)
    inside = [s for s in known if lower - reach <= s <= upper + reach]
    return Box((lower, middle, upper), (inside[0], inside[-1]))


def _window(boxes: Sequence[Box]) -> tuple[float, float]:
    low, high = min(box.whiskers[0] for box in boxes), max(box.whiskers[1] for box in boxes)
    margin = (high - low) / 10 or abs(high) / 10 or 1.0
    # What is above zero stays there, for a logarithmic axis.
    return low - (min(margin, low / 2) if low > 0 else margin), high + margin


def _row(name: str, box: Box, known: Sequence[float], window: tuple[float, float]) -> ChartRow:
    inside = [s for s in known if window[0] <= s <= window[1]]
    count = min(SAMPLE_POINTS, len(inside))
    points = tuple(inside[round(i * (len(inside) - 1) / max(1, count - 1))] for i in range(count))
    jitter = tuple((i + 1) * _GOLDEN % 1 for i in range(count))
    return ChartRow(name, box, points, jitter, len(known) - len(inside), len(known))


UNSEEN = "final"
"""The score on data that is opened at the very end is named after it: `error_final`."""

_LINES = 12
_LINE_CHARACTERS = 90


@dataclass(frozen=True)
class Dot:
    """Point in a trade-off: a side of the comparison.

    Args:
        name: of the side.
        at: by both objectives.
        unseen: the same, but the second on data that the search did not see; None where that is not known.
        hover: what is hover of it: the steps.
        differs: whether the cross-check differs.
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


def step_lines(candidate: Candidate) -> str:
    """List a candidate's steps for a hover label, in plotly's markup."""
    lines = [_step_line(number, step) for number, step in enumerate(candidate.steps[:_LINES], 1)]
    more = len(candidate.steps) - _LINES
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


TRADEOFF_POINTS = 4000
"""Points drawn at most, those on the front apart."""


@dataclass(frozen=True)
class Tradeoff:
    """Two objectives, one over the other.

    Args:
        x: the leading objective.
        y: another.
        points: every measured trial; of more than `MOST`, every so manieth.
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
    best = [(known[index][1], step_lines(measured[index][0])) for index in front]
    by_hash = dict(known)
    kept = [values for _, values in known][:: -(-len(known) // TRADEOFF_POINTS) or 1]
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
