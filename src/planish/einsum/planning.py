"""Plan of an einsum: the backend that the store knows, else the one that tuning and timing find."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from planish.core import AllFailedError, Candidate, PlanishError, Target, Task, usable_cores
from planish.einsum.backends import (
    Contraction,
    EinsumBackend,
    EinsumRequest,
    compile_kernel,
    contraction_of,
    numpy_backends,
)
from planish.einsum.selection import Selection, select_fastest
from planish.levels.loops.evaluator import verify_again
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsEvaluatorSpec, LoopsLevel
from planish.levels.loops.runtime.dispatch import CompiledKernel
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Parallel
from planish.levels.loops.workloads import matmul
from planish.measure import exclusive
from planish.measure.executors import LocalExecutor

if TYPE_CHECKING:
    from planish.einsum.decision_store import TaskHistory
    from planish.store import Store

Array = NDArray[Any]
LOADING = 0.5
"""The share of the budget for importing libraries and opening the store; what they take beyond is added."""
FINAL_SHARE = 0.4
"""The share of the time left that goes to compiling, verifying and comparing whole calls (see `FINAL_S`)."""
OVERRUN_SHARE = 0.4
"""The share of the budget for which the first candidate is waited for beyond it."""
WAIT_SHARE = 0.25
"""The share of the budget for which other processes that time something are waited for; then calls are timed
beside them."""
SEARCH_S = 0.25
"""A budget below it is used up before workers have measured much: what a model predicts is taken then."""
FINAL_S = 0.4
"""Seconds that compiling, verifying and comparing take at most."""
COMPARISON_S = 0.12
"""Seconds that the comparison of whole calls takes at most, unless the calls are long."""
COMPARISON_SHARE = 0.25
"""The share of the budget that it takes at most."""
PARALLEL_MIN_S = 30e-6
"""Work of fewer seconds on one core is not shared: handing it over takes some microseconds."""
FLOPS, BYTES = 5e10, 1e10
"""What a core does in a second at most, roughly: to guess which work is worth sharing."""
NOISE_RATIO_MAX = 2.0
"""A ratio of times that noise of a measurement does not explain."""
COMPARED_KERNELS = 2
"""Number of the best kernels that are compared by whole calls: the best of many was often best by chance."""
GUESSES = 3
"""So many are compared where none could be measured in time."""


class BudgetError(PlanishError):
    """No kernel is known, and the budget allows no tuning."""


def task_of(contraction: Contraction, cores: int) -> Task:
    """Return the task that a contraction's tuning is stored under."""
    level = LoopsLevel()
    return Task(
        contraction.program,
        level.target(contraction.program, cores),
        (level.objectives["time_s"],),
        level.version,
    )


def _worthwhile(contraction: Contraction, most: int) -> int:
    """Return how many cores to tune for: one where the work is small."""
    if most == 1:
        return 1
    program = contraction.program
    moved = sum(spec.tensor.size for spec in (*contraction.operands, contraction.result))
    itemsize = 4 if contraction.result.dtype == "float32" else 8
    seconds = max(program.flops / FLOPS, moved * itemsize / BYTES)
    return most if seconds > PARALLEL_MIN_S else 1


def _end(budget_s: float, started: float) -> float:
    """Return when the search ends, by the monotonic clock."""
    now = time.monotonic()
    left = max(started + budget_s - now, (1 - LOADING) * budget_s)
    return now + left - min(FINAL_S, FINAL_SHARE * left)


def default_schedule(task: Task[Program]) -> Candidate:
    """Return the candidate that a search begins with."""
    return TemplateSpace(task.program, task.target).start()


def _verified(selection: Selection, numpys: EinsumBackend) -> EinsumBackend:
    """Select the fastest backend whose results are correct on unseen inputs; NumPy's always are."""
    samples = selection.samples
    others = sorted(samples, key=lambda backend: statistics.median(samples[backend]))
    return next((backend for backend in (selection.backend, *others) if _is_right(backend)), numpys)


def _is_right(backend: EinsumBackend) -> bool:
    wrong = verify_again(backend.call.kernel) if isinstance(backend.call, CompiledKernel) else None
    if wrong:
        warnings.warn(f"a kernel of this einsum is wrong and not used: {wrong}", RuntimeWarning, stacklevel=5)
    return wrong is None


def guess_kernels(task: Task[Program]) -> Sequence[Candidate]:
    """Return kernels that are likely to be fast without a measurement: the default one and a model's choice.

    On six kinds of einsum the best of them took 1 to 6 % longer than what a second of tuning found.
    """
    from planish.einsum.decision_store import MODEL_SEARCHER
    from planish.tuning.api import searcher_of
    from planish.tuning.settings import Settings

    try:
        return searcher_of(LoopsLevel(), task, Settings(searcher=MODEL_SEARCHER)).ask(GUESSES)
    except PlanishError:  # no model can be read, and there is no library to learn one
        return [default_schedule(task)]


def tune_kernels(task: Task[Program], store: Store, executor: LocalExecutor, end: float, last: float) -> None:
    """Search until a time; what was measured is in the store.

    What workers are still at then is ended. Of a large contraction perhaps no candidate is measured in time.

    Args:
        task: of a contraction.
        store: open.
        executor: its workers may be starting still.
        end: by the monotonic clock.
        last: until when the first candidate is waited for.
    """
    from planish.tuning.api import tune_program
    from planish.tuning.progress import LateProgress
    from planish.tuning.settings import Budget, Settings

    executor.deadline = last
    settings = Settings(cores=task.target.cores)
    budget = Budget(seconds=max(0.01, end - time.monotonic()))
    with suppress(AllFailedError), LateProgress(store, budget) as listener:
        tune_program(
            LoopsLevel(), task.program, budget=budget, settings=settings, store=store, listener=listener,
            executor=executor, compares=False,
        )  # fmt: skip


def best_known(task: Task[Program], store: Store) -> Sequence[Candidate]:
    """List the best kernels of the store, at most `COMPARED_KERNELS`, and the default schedule of a search.

    It may be as good as the one that measured best; it is left out where it failed or is slow.
    """
    objective = task.objectives[0]
    costs: dict[Candidate, float] = {}
    for trial in store.trials(task.key, LoopsLevel().steps):
        cost = trial.cost(objective)
        if cost is not None:
            costs[trial.candidate] = cost
    best = sorted(costs, key=lambda candidate: costs[candidate])[:COMPARED_KERNELS]
    if not best:
        return []
    guess = default_schedule(task)
    near = costs.get(guess, math.inf) <= NOISE_RATIO_MAX * costs[best[0]]
    return list(dict.fromkeys((*best, guess))) if near else best


@contextmanager
def start_workers(task: Task, request: EinsumRequest) -> Generator[LocalExecutor | None]:
    """Start workers, in case that there is something to tune; None where there is no time to search."""
    if request.budget_s < SEARCH_S:
        yield None
        return
    count = max(1, min(8, usable_cores() - task.target.cores + 1))
    # The evaluator is of no use: when the run begins, they make one for the task.
    with LocalExecutor(LoopsEvaluatorSpec(matmul(4, 4, 4), task.target), workers=count) as executor:
        yield executor


def record_selection(
    store: Store, task: Task, selection: Selection, kernels: int, history: TaskHistory
) -> bool:
    """Store a selection; return whether it is kept from now on."""
    from planish.einsum.decision_store import record

    return record(store, task, selection, kernels, history)


@dataclass(frozen=True)
class Planner:
    """Finds the fastest backend of an einsum, by these parts.

    Args:
        workers: starts workers, as `start_workers`.
        known: lists the kernels that the store knows, as `best_known`.
        tune: searches, as `tune_kernels`.
        compile: compiles a candidate, as `compile_kernel`.
        select: selects a backend, as `select_fastest`.
        record: stores the selection, as `record_selection`.
    """

    workers: Callable[[Task, EinsumRequest], AbstractContextManager[LocalExecutor | None]] = start_workers
    known: Callable[[Task[Program], Store], Sequence[Candidate]] = best_known
    tune: Callable[[Task[Program], Store, LocalExecutor, float, float], None] = tune_kernels
    compile: Callable[[Contraction, Candidate, Target], CompiledKernel] = compile_kernel
    select: Callable[[Sequence[EinsumBackend], Contraction, Sequence[Array], float], Selection] = (
        select_fastest
    )
    record: Callable[[Store, Task, Selection, int, TaskHistory], bool] = record_selection

    def plan(
        self, subscripts: str, operands: Sequence[Array], request: EinsumRequest, started: float
    ) -> Selection:
        """Select the fastest backend that is known or that tuning finds, and whether it is kept from now on.

        Args:
            subscripts: as for `numpy.einsum`.
            operands: those of the call; they are computed with while backends are timed.
            request: budget, cores and store.
            started: when the call began, by the monotonic clock.

        Raises:
            ProgramError: a kernel cannot compute it, or not just as NumPy does.
            BudgetError: nothing is known, and the budget allows no tuning.
            PlanishError: the store cannot be used, or the machine has fewer cores.
        """
        contraction = contraction_of(subscripts, operands)
        backends = list(numpy_backends(contraction, subscripts))
        cores = _worthwhile(contraction, usable_cores() if request.cores is None else request.cores)
        task = task_of(contraction, cores)
        with self.workers(task, request) as executor:
            # Heavy libraries: they are imported while the workers start.
            from planish.einsum.decision_store import read_history, stored_backend
            from planish.store import store_at

            with store_at(request.store) as store:
                history = read_history(store, task)
                stored = stored_backend(history, contraction, task, backends)
                if stored is not None:
                    return Selection(stored, {})
                if executor is not None:
                    # Compile something: the first time takes 0.1 s and more.
                    target = LoopsLevel().target(contraction.program, 1)
                    self.compile(contraction, default_schedule(task), target)
                candidates, measured = self._candidates(task, history, store, executor, request, started)
                backends += self._kernels(contraction, task, candidates)
                seconds = min(COMPARISON_S, COMPARISON_SHARE * request.budget_s)
                with exclusive(patience_s=WAIT_SHARE * request.budget_s):
                    selection = self.select(backends, contraction, operands, seconds)
                selection = replace(selection, backend=_verified(selection, backends[0]))
                return replace(selection, conclusive=self.record(store, task, selection, measured, history))

    def _candidates(
        self,
        task: Task,
        history: TaskHistory,
        store: Store,
        executor: LocalExecutor | None,
        request: EinsumRequest,
        started: float,
    ) -> tuple[Sequence[Candidate], int]:
        """Return the best schedules in the store and their number, after tuning where it has none.

        Where none could be measured in time, these are guesses, and the number is 0.
        """
        found = history.kernels or self.known(task, store)
        if not found:
            if request.budget_s <= 0:
                what = "no kernel is known for it, and the budget allows no tuning"
                raise BudgetError(what, "Give budget_s.")
            if executor is not None:
                end = _end(request.budget_s, started)
                self.tune(task, store, executor, end, end + OVERRUN_SHARE * request.budget_s)
                found = self.known(task, store)
        return found or guess_kernels(task), len(found)

    def _kernels(
        self, contraction: Contraction, task: Task, candidates: Sequence[Candidate]
    ) -> Iterator[EinsumBackend]:
        """Compile candidates, for one core and, if they share work, for all."""
        for candidate in candidates:
            shares = any(isinstance(step, Parallel) for step in candidate.steps)
            for cores in sorted({1, task.target.cores if shares else 1}):
                target = LoopsLevel().target(contraction.program, cores)
                yield EinsumBackend("kernel", self.compile(contraction, candidate, target), cores, candidate)
