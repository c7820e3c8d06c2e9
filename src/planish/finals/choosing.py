"""Who is measured again at the end."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import Candidate, Level, Task, Trial, pareto_front
from planish.finals.telling import bounds, telling

FEW = 3
FEW_OF_FRONT = 8
FAR = 2.0
"""No luck of measuring makes so much."""


def finalists(
    level: Level, task: Task, trials: Sequence[Trial], count: int | None, first: Candidate | None = None
) -> list[Candidate]:
    """Choose the best distinct candidates, the other ways to build the very best, and the first guess.

    The best of many noisy measurements is often the luckiest, and no better than the first guess. That one is
    chosen too, unless it failed, was not measured, or was more than `FAR` times as bad as the best.

    Of several objectives, they are members of the Pareto front, in the order of `telling`: what is more than
    twice as bad as the baseline in anything is none of them.

    Args:
        level: the task's.
        task: what was tuned.
        trials: of the search.
        count: how many of the best; None for the usual number, 0 for no finalists at all.
        first: the first guess.
    """
    objective, *others = task.objectives
    if others:
        return _of_front(level, task, trials, FEW_OF_FRONT if count is None else count)
    measured = [(cost, t.index, t.candidate) for t in trials if (cost := t.cost(objective)) is not None]
    few = FEW if count is None else count
    best = [candidate for _, _, candidate in sorted(measured, key=lambda m: m[:2])[:few]]
    if not best:
        return []
    bound = FAR * min(measured)[0] if objective.direction == "down" else min(measured)[0] / FAR
    wanted = None if first is None or objective.exact else first.hash
    guess = [c for cost, _, c in measured if c.hash == wanted and cost <= bound]
    return list(dict.fromkeys((*best, *level.variants(task, best[0]), *guess)))


def _of_front(level: Level, task: Task, trials: Sequence[Trial], count: int) -> list[Candidate]:
    """Choose of the front what is of use, the most telling first; the baseline where nothing is."""
    baseline, front = level.baseline(task), pareto_front(trials, task.objectives)
    start = next((t.costs(task.objectives) for t in trials if t.candidate.hash == baseline.hash), None)
    members = [trial for trial in front if trial.candidate.hash != baseline.hash]
    worst = None if start is None else bounds(start, task.objectives)
    order = telling([trial.costs(task.objectives) or () for trial in members], worst, start)
    chosen = [members[place].candidate for place in order]
    return chosen[:count] if chosen else [baseline][:count]
