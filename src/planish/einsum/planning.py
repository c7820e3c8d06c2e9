"""Plan of an einsum: the backend that the store knows, else the one that tuning and timing find.

A selection is stored, so that no later process tunes or times again.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
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
from planish.levels.loops.backends import Library, library_of
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
    from planish.store import Reader, ResultRow, Store

NUMPY = Candidate((Library("numpy"),))
MODEL_SEARCHER = "model-guided"
"""The searcher that has a model."""
OF_WHOLE_CALLS = "planish.einsum selected this backend by timing whole calls; the kernels are from other runs"
"""Note of a run that holds a selection."""
ATTEMPTS = 3
"""Selections without a kernel that could be measured within the budget, after which the last one is kept."""
COMPARISONS = 10
"""Selections disturbed by others, after which the last one is kept."""

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
"""Arithmetic of a core in a second at most, roughly: to guess which work is worth sharing."""
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
    from planish.tuning.result import EINSUM
    from planish.tuning.settings import Budget, Settings

    executor.deadline = last
    settings = Settings(cores=task.target.cores)
    budget = Budget(seconds=max(0.01, end - time.monotonic()))
    with suppress(AllFailedError), LateProgress(store, budget) as listener:
        tune_program(
            LoopsLevel(), task.program, budget=budget, settings=settings, store=store, listener=listener,
            executor=executor, compares=False, started_by=EINSUM,
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


@dataclass(frozen=True)
class TaskHistory:
    """Contents of the store on a task.

    Args:
        decision: the newest selection, with the `call`; None where there is none.
        tuned: the best finalist of the user's own runs; None where there is none.
    """

    decision: ResultRow | None = None
    tuned: ResultRow | None = None

    @property
    def call(self) -> Mapping[str, Any]:
        """Return the data of the selection; empty where there is none."""
        return self.decision.data["call"] if self.decision else {}

    @property
    def is_final(self) -> bool:
        """Return whether the selection is kept, and no run has found another best kernel since."""
        return is_final(self.call) and (self.tuned is None or _named(self.tuned) == self.call.get("tuned"))

    @property
    def kernels(self) -> Sequence[Candidate]:
        """The kernels to compare with NumPy's backends: what was measured and selected, or tuned since."""
        rows = [self.decision] if self.call.get("kernels") else []
        found = (row.candidate for row in (*rows, *([] if self.is_final else [self.tuned])) if row)
        return [*dict.fromkeys(candidate for candidate in found if library_of(candidate) is None)]


def read_history(store: Reader, task: Task) -> TaskHistory:
    """Read the newest selection for a task, and the best kernel that was tuned."""
    rows, began = (
        store.best_results(task, LoopsLevel().steps),
        {r.id: r.started for r in store.runs(task.key)},
    )
    decisions = [row for row in rows if isinstance(row.data.get("call"), Mapping)]
    newest = max(decisions, key=lambda row: began.get(row.run_id, 0.0), default=None)
    return TaskHistory(newest, next((row for row in rows if "call" not in row.data and row.ratio > 0), None))


def stored_backend(
    history: TaskHistory, contraction: Contraction, task: Task, backends: Sequence[EinsumBackend]
) -> EinsumBackend | None:
    """Return the backend that an earlier process selected; None where the store has none for this machine."""
    call = history.call
    if history.decision is None or not history.is_final:
        return None
    if call.get("backend") != "kernel":
        return next((backend for backend in backends if backend.name == call.get("backend")), None)
    cores, chosen = min(int(call.get("cores", 1)), task.target.cores), history.decision.candidate
    compiled = compile_kernel(contraction, chosen, LoopsLevel().target(contraction.program, cores))
    return EinsumBackend("kernel", compiled, cores, chosen)


def is_final(call: Mapping[str, Any]) -> bool:
    """Return whether a selection is kept; another process, or a later call, selects again where it is not."""
    attempts = call.get("attempts", 0)
    if not call.get("kernels"):
        return attempts >= ATTEMPTS
    return not call.get("disturbed") or attempts >= COMPARISONS


def record(store: Store, task: Task, selection: Selection, kernels: int, history: TaskHistory) -> bool:
    """Store a selection as the result of a run of its own; return whether it is kept from now on.

    What the user's own runs found stays as it is.

    Args:
        store: open.
        task: of the contraction.
        selection: the backend and its times.
        kernels: how many there were to choose from, guesses apart.
        history: what the store had before.
    """
    from planish.store import STARTED_BY, HeldError
    from planish.tuning.result import EINSUM

    backend, samples = selection.backend, selection.samples
    compared = [
        {"backend": w.name, "cores": w.cores, "seconds": statistics.median(t)} for w, t in samples.items()
    ]
    call = {
        "backend": backend.name,
        "cores": backend.cores,
        "kernels": kernels,
        "attempts": 1 + history.call.get("attempts", 0),
        "tuned": _named(history.tuned),
        "compared": compared,
        **({} if selection.conclusive else {"disturbed": True}),
    }
    row = _row(task, backend, samples)
    run = next((run.id for run in store.runs(task.key) if run.searcher == EINSUM), None)
    try:
        if run is None:
            by = {STARTED_BY: EINSUM}
            run = store.begin_run(task, searcher=EINSUM, space="template", seed=0, options=by)
        else:
            store.resume_run(run)
    except HeldError:  # another process stores its selection just now
        return False
    store.save_result(run, [replace(row, data={**row.data, "call": call})])
    store.finish_run(run)
    return is_final(call)


def _named(row: ResultRow | None) -> str | None:
    return row.candidate.hash if row else None


def _row(task: Task, backend: EinsumBackend, samples: Mapping[EinsumBackend, Sequence[float]]) -> ResultRow:
    """Compare the selection with the best of NumPy's backends, as at the end of any run."""
    from planish.measure.intervals import ratio
    from planish.tuning.comparison import Compared, Comparison, Finalist, Measurement
    from planish.tuning.comparison_codec import encode

    objective = task.objectives[0]
    numpys = min((w for w in samples if w.name != "kernel"), key=lambda w: statistics.median(samples[w]))
    own, theirs = samples[backend], samples[numpys]
    rounds = min(len(own), len(theirs))
    over = ratio([own[:rounds]], [theirs[:rounds]])
    base = Measurement(objective, statistics.median(theirs), samples=tuple(theirs))
    found = replace(
        base, median=statistics.median(own), ratio=over, verdict=over.verdict(objective), samples=tuple(own)
    )
    chosen = Finalist(candidate=backend.candidate or NUMPY, measured={objective.name: found})
    baseline = Compared(name="baseline", measured={objective.name: base})
    (row,) = encode(Comparison((chosen,), baseline, notes=(OF_WHOLE_CALLS,)))
    return row


@dataclass(frozen=True)
class Planner:
    """Finds the fastest backend of an einsum, by these parts.

    Args:
        workers: starts workers, as `start_workers`.
        known: lists the kernels that the store knows, as `best_known`.
        tune: searches, as `tune_kernels`.
        compile: compiles a candidate, as `compile_kernel`.
        select: selects a backend, as `select_fastest`.
        record: stores the selection, as `record`.
    """

    workers: Callable[[Task, EinsumRequest], AbstractContextManager[LocalExecutor | None]] = start_workers
    known: Callable[[Task[Program], Store], Sequence[Candidate]] = best_known
    tune: Callable[[Task[Program], Store, LocalExecutor, float, float], None] = tune_kernels
    compile: Callable[[Contraction, Candidate, Target], CompiledKernel] = compile_kernel
    select: Callable[[Sequence[EinsumBackend], Contraction, Sequence[Array], float], Selection] = (
        select_fastest
    )
    record: Callable[[Store, Task, Selection, int, TaskHistory], bool] = record

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
