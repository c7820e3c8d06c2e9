"""Who is measured again at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import le

from planish.core import Candidate, Costs, Level, Task, Trial, pareto_front, reference_point

FEW = 3
FEW_OF_FRONT = 8


def finalists(level: Level, task: Task, trials: Sequence[Trial], count: int | None) -> list[Candidate]:
    """Choose the best distinct candidates, and the other ways to build the very best.

    Of several objectives, they are members of the Pareto front, spread over it: first over what is at most
    twice as bad as the baseline, its ends among them, then over the rest of it.

    Args:
        level: the task's.
        task: what was tuned.
        trials: of the search.
        count: how many; None for the usual number.
    """
    objective, *others = task.objectives
    if others:
        return _of_front(level, task, trials, FEW_OF_FRONT if count is None else count)
    measured = [(cost, t.index, t.candidate) for t in trials if (cost := t.cost(objective)) is not None]
    few = FEW if count is None else count
    best = [candidate for _, _, candidate in sorted(measured, key=lambda m: m[:2])[:few]]
    variants = level.variants(task, best[0]) if best else ()
    return list(dict.fromkeys((*best, *variants)))


def _of_front(level: Level, task: Task, trials: Sequence[Trial], count: int) -> list[Candidate]:
    """Choose of the front; the baseline is measured anyway, and chosen only where it is all of the front.

    What is more than twice as bad as the baseline in anything is chosen only where there are too few others.
    """
    baseline, whole = level.baseline(task), pareto_front(trials, task.objectives)
    front = [trial for trial in whole if trial.candidate != baseline] or whole
    costs = [t.costs(task.objectives) or () for t in front]
    start = next((t.costs(task.objectives) for t in trials if t.candidate == baseline), None)
    chosen = list[int]()
    for part in parted(costs, start):
        chosen += [part[place] for place in spread([costs[i] for i in part], count - len(chosen))]
    return [front[place].candidate for place in sorted(chosen)]


def parted(costs: Sequence[Costs], baseline: Costs | None) -> tuple[list[int], list[int]]:
    """Give the places of costs at most twice as bad as the baseline's in everything, and the others."""
    worst = reference_point(baseline) if baseline else None
    useful = [i for i, vector in enumerate(costs) if worst is None or all(map(le, vector, worst))]
    return useful, [i for i in range(len(costs)) if i not in useful]


def spread(costs: Sequence[Sequence[float]], count: int) -> list[int]:
    """Choose vectors far from each other: the least of each cost, then always the farthest from those chosen.

    Args:
        costs: finite vectors of one length, no two equal.
        count: how many to choose; there may be fewer.

    Returns:
        Their places, in order.
    """
    if not costs:
        return []
    columns = list(zip(*costs, strict=True))
    lows, spans = [min(c) for c in columns], [(max(c) - min(c)) or 1.0 for c in columns]
    points = [[(v - low) / s for v, low, s in zip(vector, lows, spans, strict=True)] for vector in costs]
    chosen = list(dict.fromkeys(column.index(low) for column, low in zip(columns, lows, strict=True)))[:count]
    while len(chosen) < min(count, len(costs)):
        left = [place for place in range(len(costs)) if place not in chosen]
        chosen.append(max(left, key=lambda p: min(math.dist(points[p], points[c]) for c in chosen)))
    return sorted(chosen)
