"""Who is measured again at the end."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import Candidate, Level, Task, Trial, pareto_front
from planish.finals.telling import bounds, telling

FEW = 3
FEW_OF_FRONT = 8


def finalists(level: Level, task: Task, trials: Sequence[Trial], count: int | None) -> list[Candidate]:
    """Choose the best distinct candidates, and the other ways to build the very best.

    Of several objectives, they are members of the Pareto front, in the order of `telling`: what is more than
    twice as bad as the baseline in anything is none of them.

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
    """Choose of the front what is of use, the most telling first; the baseline where nothing is."""
    baseline, front = level.baseline(task), pareto_front(trials, task.objectives)
    start = next((t.costs(task.objectives) for t in trials if t.candidate == baseline), None)
    members = [trial for trial in front if trial.candidate != baseline]
    worst = None if start is None else bounds(start, task.objectives)
    order = telling([trial.costs(task.objectives) or () for trial in members], worst, start)
    chosen = [members[place].candidate for place in order]
    return chosen[:count] if chosen else [baseline][:count]
