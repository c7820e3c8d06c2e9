"""Measuring the finalists again, beside the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from planish.core import Candidate, EvaluatorFactory, Executor, PlanishError, Reference
from planish.finals.searched import Searched
from planish.measure import Entrant, LocalExecutor, Plan, Standing, remeasure_all

Standings = Mapping[str, Standing]
"""How somebody did, by the objectives' names."""


def compare(search: Searched, candidates: Sequence[Candidate]) -> tuple[Standings, list[Standings]]:
    """Measure the baseline and candidates by all objectives, interleaved; gives how each did, in order.

    Raises:
        PlanishError: the baseline fails.
    """
    level, task = search.level, search.task
    factory = level.evaluator(task, final=True)
    entrants = [Entrant(f"#{i}", c, factory) for i, c in enumerate(candidates, 1)]
    baseline = Entrant("baseline", level.baseline(task), factory)
    plan = Plan(seed=search.settings.seed)
    noisy = not all(objective.exact for objective in task.objectives)
    start = LocalExecutor if search.executor is None or noisy else partial(_lent, search.executor)
    base, *others = remeasure_all(baseline, entrants, task.objectives, plan, start)
    return base, others


def compare_reference(search: Searched, reference: Reference) -> Mapping[str, float]:
    """Measure another baseline in turns with the baseline; gives its medians by objective.

    It may be several times slower, and it is not judged; so one process is enough.

    Raises:
        PlanishError: one of them fails.
    """
    level, task = search.level, search.task
    baseline = Entrant("baseline", level.baseline(task), level.evaluator(task, final=True))
    entrant = Entrant(reference.name, reference.candidate, reference.factory)
    plan = Plan(processes=1, rounds=3, seed=search.settings.seed)
    _, found = remeasure_all(baseline, [entrant], task.objectives, plan, LocalExecutor)
    for standing in found.values():
        if standing.failures:
            failure = standing.failures[0]
            raise PlanishError(
                f"{reference.name} failed: {failure.stage}: {failure.reason}: {failure.detail}"
            )
    return {name: standing.median for name, standing in found.items()}


def _lent(executor: LocalExecutor, factory: EvaluatorFactory) -> Executor:
    executor.restart_with(factory)
    return _Lent(executor)


class _Lent:
    """Somebody else's executor: it is not ours to close."""

    def __init__(self, executor: LocalExecutor) -> None:
        self.submit = executor.submit

    def close(self) -> None:
        """Do nothing."""
