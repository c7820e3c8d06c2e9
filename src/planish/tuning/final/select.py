"""Who is measured again at the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import nsmallest
from operator import le

from planish.core import (
    Candidate,
    Costs,
    Failed,
    Level,
    Measured,
    Objective,
    Task,
    Trial,
    bounds,
    pareto_front,
)
from planish.results.comparison import Finalist
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.search_outcome import SearchOutcome, SearchTrials
from planish.tuning.final.telling import telling
from planish.tuning.final.within_noise import least_costs

FEW = 3
FEW_OF_FRONT = 8


def select(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Choose the finalists, and the best of the search where there are several objectives."""
    del end
    first, count = search.space().start(), search.settings.finalists
    candidates, best = choose(search.level, search.task, search.trials, count, first)
    tried = search.trials.of(candidates)
    outcomes = [tried[each.hash].outcome if each.hash in tried else None for each in candidates]
    finalists = (
        Finalist(
            candidate=candidate,
            searched=len(candidate.steps),
            trial=outcome.values if isinstance(outcome, Measured) else {},
        )
        for candidate, outcome in zip(candidates, outcomes, strict=True)
    )
    return replace(state, finalists=tuple(finalists), best=best)


def choose(
    level: Level, task: Task, trials: SearchTrials, count: int | None, first: Candidate
) -> tuple[list[Candidate], Trial | None]:
    """Choose the best distinct candidates, the first guess, and the other ways to build the very best.

    The best of many noisy measurements is often the luckiest, and no better than the first guess. So that
    one is always chosen, and early, since where the time is short the last are left out; unless it failed.
    So are other ways to build the best, which the search could not try; the next best are much like it.
    Where a space begins with the unchanged program there is no guess.

    Of several objectives, they are members of the Pareto front, in the order of `telling`: what is more than
    twice as bad as the baseline in anything is none of them.

    Args:
        level: the task's.
        task: what was tuned.
        trials: of the search; gone through once.
        count: how many of the best; None for the usual number.
        first: what the space begins with.

    Returns:
        Them, and of several objectives the best trial that is worse than the baseline in nothing.
    """
    several = len(task.objectives) > 1
    few = count or (FEW_OF_FRONT if several else FEW)
    candidates, best = _of_front(level, task, trials, few) if several else (_best(task, trials, few), None)
    if not candidates:
        return [], best
    guess = trials.of([first]).get(first.hash)
    guesses = [first] if first.steps and not (guess and isinstance(guess.outcome, Failed)) else []
    variants = [] if several else level.variants(task, candidates[0])
    return list(dict.fromkeys((candidates[0], *guesses, *variants, *candidates[1:]))), best


def _best(task: Task, trials: Iterable[Trial], count: int) -> list[Candidate]:
    measured = (
        (cost, t.index, t.candidate) for t in trials if (cost := t.cost(task.objectives[0])) is not None
    )
    # Of equal costs the earlier one; candidates themselves have no order.
    return [candidate for _, _, candidate in nsmallest(count, measured, key=lambda m: m[:2])]


def _of_front(
    level: Level, task: Task, trials: SearchTrials, count: int
) -> tuple[list[Candidate], Trial | None]:
    """Choose of the front what is of use, the most telling first; the baseline where nothing is."""
    baseline, objectives = level.baseline(task), task.objectives
    base = trials.of([baseline]).get(baseline.hash)
    start = None if base is None else base.costs(objectives)
    watch = _Watch(objectives, start)
    members = [t for t in pareto_front(watch.all(trials), objectives) if t.candidate.hash != baseline.hash]
    worst = None if start is None else bounds(start, objectives)
    costs = [trial.costs(objectives) or () for trial in members]
    least = [least_costs(trial, known, objectives) for trial, known in zip(members, costs, strict=True)]
    order = telling(costs, worst, start, least)
    chosen = [members[place].candidate for place in order]
    return (chosen[:count] if chosen else [baseline][:count]), watch.best


class _Watch:
    """Looks, at trials that are gone through, for the best that is worse than the baseline in nothing."""

    def __init__(self, objectives: Sequence[Objective], start: Costs | None) -> None:
        self.best: Trial | None = None
        self._objectives, self._start, self._least = objectives, start, float("inf")

    def all(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Give all trials on."""
        for trial in trials:
            costs, start = trial.costs(self._objectives), self._start
            if costs and start and costs[0] < self._least and all(map(le, costs, start)):
                self.best, self._least = trial, costs[0]
            yield trial
