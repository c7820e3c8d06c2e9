"""How the best value came down (or up) during the search."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from planish.core import Candidate, Failed, Objective, Trial

PAUSE_S = 60.0
"""When nothing ended for longer, beyond the next trial's own work, the run was not under way."""

MOST = 2000
"""Points drawn at most."""

Place = tuple[float, float]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Curve:
    """What is drawn of a search, over trials or time.

    Args:
        best: where the best value changed, and the end.
        measured: the trials; of more than `MOST` every so manieth.
        failed: where trials failed; of more than `MOST` every so manieth.
        end: where the axis ends.
    """

    best: tuple[Place, ...]
    measured: tuple[Place, ...]
    failed: tuple[float, ...]
    end: float


def value_of(trial: Trial, objective: Objective) -> float | None:
    """Give a trial's value; None where it failed or is not finite."""
    cost = trial.cost(objective)
    return None if cost is None or not math.isfinite(cost) else objective.cost(cost)


def value_for(trials: Sequence[Trial], candidate: Candidate | None, objective: Objective) -> float | None:
    """Give the value that a candidate had in the search."""
    hits = (t for t in trials if candidate is not None and t.candidate.hash == candidate.hash)
    return next((v for t in hits if (v := value_of(t, objective)) is not None), None)


def by_number(trials: Sequence[Trial]) -> list[float]:
    """Give each trial's place in the run, from 1."""
    return [float(trial.index + 1) for trial in trials]


@dataclass(frozen=True)
class Timeline:
    """When trials ended.

    Args:
        seconds: that the run had been under way, by trial.
        paused: seconds left out, because the run was not under way.
    """

    seconds: tuple[float, ...]
    paused: float


def by_time(trials: Sequence[Trial], started: float) -> Timeline:
    """Give the seconds that the run had been under way when each trial ended.

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
    """Give the seconds under way by trial index, and those of the pauses."""
    spent, last, total, paused = dict[int, float](), started, 0.0, 0.0
    for trial in sorted((t for t in trials if not t.cached), key=lambda t: t.time):
        work, gap = sum(trial.seconds.values()), max(0.0, trial.time - last)
        pause = gap - work if gap > work + PAUSE_S else 0.0
        total, paused = total + gap - pause, paused + pause
        spent[trial.index], last = total, max(last, trial.time)
    return spent, paused


def curve(trials: Sequence[Trial], places: Sequence[float], objective: Objective) -> Curve:
    """Work out what is drawn.

    Args:
        trials: in any order.
        places: of the trials, by number or time.
        objective: what is improved.
    """
    ordered = sorted(zip(places, trials, strict=True), key=lambda pair: (pair[0], pair[1].index))
    end = max(places, default=0.0)
    measured = [(x, v) for x, t in ordered if (v := value_of(t, objective)) is not None]
    failed = [x for x, t in ordered if isinstance(t.outcome, Failed)]
    return Curve(_best(measured, objective, end), _thinned(measured), _thinned(failed), end)


def _best(measured: Sequence[Place], objective: Objective, end: float) -> tuple[Place, ...]:
    best = list[Place]()
    for x, value in measured:
        if not best or objective.cost(value) < objective.cost(best[-1][1]):
            best.append((x, value))
    return (*best, (end, best[-1][1])) if best else ()


def _thinned(many: Sequence[_T]) -> tuple[_T, ...]:
    return tuple(many[:: -(-len(many) // MOST) or 1])


def limit_of(curve: Curve, baseline: float | None, objective: Objective) -> float:
    """Tell what is too bad to be drawn in its place: twice as bad as the baseline and the first best.

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
