"""Tuning kernels for a contraction within a time that is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress

from planish.budget import Budget
from planish.core import AllFailedError, Candidate, PlanishError, Task
from planish.einsum.decision import GUESSER
from planish.executors import LocalExecutor
from planish.loops.lang.program import Program
from planish.loops.level import LoopsLevel
from planish.loops.space import TemplateSpace
from planish.search import make_searcher
from planish.settings import Settings
from planish.store import Store
from planish.tuning.api import tune_program

FAR = 2.0
"""No luck of measuring makes so much."""
KEPT = 2
"""Of the best kernels so many are compared by whole calls: the best of many was often lucky."""

GUESSES = 3
"""So many are compared where none could be measured in time."""


def guessed(task: Task[Program]) -> Sequence[Candidate]:
    """Give kernels that seem good, of which nothing was measured: the first guess, and what a model predicts.

    On six kinds of einsum the best of them took 1 to 6 % longer than what a second of tuning found.
    """
    space = TemplateSpace(task.program, task.target)
    try:
        return make_searcher(GUESSER, space, task.objectives, 0).ask(GUESSES)
    except PlanishError:  # no model can be read, and there is no library to learn one
        return [space.start()]


def tuned(task: Task[Program], store: Store, executor: LocalExecutor, end: float, last: float) -> None:
    """Search until a time; what was measured is in the store.

    What workers are still at then is ended. Of a large contraction perhaps no candidate is measured in time.

    Args:
        task: of a contraction.
        store: open.
        executor: its workers may be starting still.
        end: by the monotonic clock.
        last: until when the first candidate is waited for.
    """
    executor.deadline = last
    settings = Settings(cores=task.target.cores)
    budget = Budget(seconds=max(0.01, end - time.monotonic()))
    with suppress(AllFailedError):
        tune_program(
            LoopsLevel(), task.program, budget=budget, settings=settings, store=store, executor=executor,
            compares=False,
        )  # fmt: skip


def best_known(task: Task[Program], store: Store) -> Sequence[Candidate]:
    """List the best kernels that the store knows, at most `KEPT`, and the first guess of a search.

    The first guess may be as good as the luckiest of many; it is left out where it failed or is far behind.
    """
    program, objective = task.program, task.objectives[0]
    costs: dict[Candidate, float] = {}
    for trial in store.trials(task.key, LoopsLevel().steps):
        cost = trial.cost(objective)
        if cost is not None:
            costs[trial.candidate] = cost
    best = sorted(costs, key=lambda candidate: costs[candidate])[:KEPT]
    if not best:
        return []
    guess = TemplateSpace(program, task.target).start()
    near = costs.get(guess, math.inf) <= FAR * costs[best[0]]
    return list(dict.fromkeys((*best, guess))) if near else best
