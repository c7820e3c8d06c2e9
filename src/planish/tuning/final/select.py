"""Who is measured again at the end."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest

from planish.core import Candidate, Failed, Level, Task, Trial, pareto_front
from planish.tuning.final.telling import bounds, telling

FEW = 3
FEW_OF_FRONT = 8


def finalists(
    level: Level, task: Task, trials: Iterable[Trial], count: int | None, first: Candidate
) -> list[Candidate]:
    """Choose the best distinct candidates, the first guess, and the other ways to build the very best.

    The best of many noisy measurements is often the luckiest, and no better than the first guess. So that
    one is always chosen, and early, since where the time is short the last are left out; unless it failed.
    Where a space begins with the unchanged program there is no guess.

    Of several objectives, they are members of the Pareto front, in the order of `telling`: what is more than
    twice as bad as the baseline in anything is none of them.

    Args:
        level: the task's.
        task: what was tuned.
        trials: of the search; gone through more than once.
        count: how many of the best; None for the usual number.
        first: what the space begins with.
    """
    several = len(task.objectives) > 1
    few = count or (FEW_OF_FRONT if several else FEW)
    best = _of_front(level, task, trials, few) if several else _best(task, trials, few)
    if not best:
        return []
    variants = [] if several else level.variants(task, best[0])
    return list(dict.fromkeys((best[0], *_guess(trials, first), *best[1:], *variants)))


def _guess(trials: Iterable[Trial], first: Candidate) -> list[Candidate]:
    """Give the first guess, if there is one and it is not known to fail."""
    failed = any(isinstance(trial.outcome, Failed) for trial in trials if trial.candidate.hash == first.hash)
    return [first] if first.steps and not failed else []


def _best(task: Task, trials: Iterable[Trial], count: int) -> list[Candidate]:
    measured = (
        (cost, t.index, t.candidate) for t in trials if (cost := t.cost(task.objectives[0])) is not None
    )
    return [candidate for _, _, candidate in nsmallest(count, measured, key=lambda m: m[:2])]


def _of_front(level: Level, task: Task, trials: Iterable[Trial], count: int) -> list[Candidate]:
    """Choose of the front what is of use, the most telling first; the baseline where nothing is."""
    baseline, front = level.baseline(task), pareto_front(trials, task.objectives)
    start = next((t.costs(task.objectives) for t in trials if t.candidate.hash == baseline.hash), None)
    members = [trial for trial in front if trial.candidate.hash != baseline.hash]
    worst = None if start is None else bounds(start, task.objectives)
    order = telling([trial.costs(task.objectives) or () for trial in members], worst, start)
    chosen = [members[place].candidate for place in order]
    return chosen[:count] if chosen else [baseline][:count]
