"""Selection of finalists: the best trials, the first guess and members of the Pareto front.

Members of a front are ordered by how much hypervolume they add to those before them, so that a comparison
that runs out of time has covered the front in its breadth.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import nsmallest
from operator import le

from planish.core import (
    NOTICED,
    Candidate,
    Costs,
    Failed,
    Level,
    Measured,
    Objective,
    Task,
    Trial,
    bounds,
    hypervolume,
    pareto_front,
)
from planish.measure import by_processor_time
from planish.measure.timing import error
from planish.tuning.comparison import Finalist
from planish.tuning.final_state import FinalState, SearchOutcome, SearchTrials

ERRORS = 2.0
"""Standard errors that chance may explain (95 %)."""


def least_costs(trial: Trial, costs: Costs, objectives: tuple[Objective, ...]) -> Costs:
    """Return the costs of a trial less what noise may have added: two standard errors, 1 % at least.

    They are for the choice of who is measured again, in turns and in fresh processes, and prove nothing: of
    a single process gives no estimate of between-process variance.

    Args:
        trial: with samples, where its level keeps them.
        costs: its own.
        objectives: by which; what is exact has no noise.
    """
    pairs = zip(costs, objectives, strict=True)
    return tuple(cost if o.exact else cost - abs(cost) * _share(trial, o) for cost, o in pairs)


def _share(trial: Trial, objective: Objective) -> float:
    """Estimate within which share of itself a value is known."""
    outcome = trial.outcome
    assert isinstance(outcome, Measured)
    names = (objective.name, by_processor_time(objective.name))
    # The value is the median of one of both.
    known = [found for name in names if (found := outcome.samples.get(name))]
    same = [f for f in known if statistics.median(f) == outcome.values[objective.name]]
    return max([NOTICED, *(ERRORS * error(found) for found in same if len(found) > 1)])


def greedy_hypervolume_order(
    costs: Sequence[Costs],
    worst: Costs | None,
    baseline: Costs | None,
    least: Sequence[Costs] | None = None,
) -> list[int]:
    """Put the members of a front in the order in which they add the most, wherever the time ends.

    First comes the knee, which is the one that dominates most, of those that are worse than the baseline in
    nothing, if there are any: they alone may be called better, so on a busy machine, where one or two can be
    measured, it is one of them. Then come the best by each objective; then always the one that adds most to
    what those before it dominate.

    Args:
        costs: of the members, no two equal.
        worst: what is worse than this in any objective is of no use; None where the baseline is not known.
        baseline: its costs; None where they are not known.
        least: how low the costs of each may be, since they are noisy: who may be no worse than the baseline
            counts as such. None: as measured.

    Returns:
        The places of those that are of use.
    """
    useful = [place for place, vector in enumerate(costs) if worst is None or _within(vector, worst)]
    if not useful:
        return []
    # Without a baseline: the worst of all, beside which the ends of the front add nothing.
    reference = worst or tuple(map(max, zip(*costs, strict=True)))
    # Only one of these goes first: the front is to be shown in its breadth.
    lowest = costs if least is None else least
    harmless = [place for place in useful if baseline is not None and _within(lowest[place], baseline)]
    first = _adding(harmless, [], costs, reference)[:1]
    order = list(dict.fromkeys([*first, *_ends([costs[place] for place in useful], useful)]))
    return order + _adding([place for place in useful if place not in order], order, costs, reference)


def _within(costs: Costs, most: Costs) -> bool:
    return all(map(le, costs, most))


def _ends(costs: Sequence[Costs], places: Sequence[int]) -> list[int]:
    """Return the best by each objective; of equals the first."""
    return [places[column.index(min(column))] for column in zip(*costs, strict=True)]


def _adding(
    places: Sequence[int], before: Sequence[int], costs: Sequence[Costs], reference: Costs
) -> list[int]:
    """Order places so that each adds the most hypervolume to what is before it."""
    left, order = list(places), list[int]()
    while left:
        held = [costs[place] for place in (*before, *order)]
        # Greedy: hypervolume is submodular, so what is added first comes near the best choice of as many.
        order.append(max(left, key=lambda place: hypervolume([*held, costs[place]], reference)))
        left.remove(order[-1])
    return order


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
            n_steps_found=len(candidate.steps),
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

    Of several objectives, they are members of the Pareto front, in the order of `greedy_hypervolume_order`;
    what is more than twice as bad as the baseline in anything is none of them.

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
    """Choose of the front what is of use, what adds most hypervolume first; the baseline where nothing is."""
    baseline, objectives = level.baseline(task), task.objectives
    base = trials.of([baseline]).get(baseline.hash)
    start = None if base is None else base.costs(objectives)
    watch = _Watch(objectives, start)
    members = [t for t in pareto_front(watch.all(trials), objectives) if t.candidate.hash != baseline.hash]
    worst = None if start is None else bounds(start, objectives)
    costs = [trial.costs(objectives) or () for trial in members]
    least = [least_costs(trial, known, objectives) for trial, known in zip(members, costs, strict=True)]
    order = greedy_hypervolume_order(costs, worst, start, least)
    chosen = [members[place].candidate for place in order]
    return (chosen[:count] if chosen else [baseline][:count]), watch.best


class _Watch:
    """Looks, at trials that are gone through, for the best that is worse than the baseline in nothing."""

    def __init__(self, objectives: Sequence[Objective], start: Costs | None) -> None:
        self.best: Trial | None = None
        self._objectives, self._start, self._least = objectives, start, float("inf")

    def all(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Yield all trials on."""
        for trial in trials:
            costs, start = trial.costs(self._objectives), self._start
            if costs and start and costs[0] < self._least and all(map(le, costs, start)):
                self.best, self._least = trial, costs[0]
            yield trial
