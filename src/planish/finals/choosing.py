"""Who is measured again at the end."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import Candidate, Level, Task, Trial

FEW = 3


def finalists(level: Level, task: Task, trials: Sequence[Trial], count: int | None) -> list[Candidate]:
    """Choose the best distinct candidates, and the other ways to build the very best.

    Args:
        level: the task's.
        task: its first objective counts.
        trials: of the search.
        count: how many; None for the usual number.
    """
    objective = task.objectives[0]
    measured = [(cost, t.index, t.candidate) for t in trials if (cost := t.cost(objective)) is not None]
    few = FEW if count is None else count
    best = [candidate for _, _, candidate in sorted(measured, key=lambda m: m[:2])[:few]]
    others = level.variants(task, best[0]) if best else ()
    return list(dict.fromkeys((*best, *others)))
