"""How an einsum is computed from now on: as the store knows, else as tuning and timing find out."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from planish.budget import Budget
from planish.core import AllFailedError, Candidate, PlanishError, Task, best_trial, usable_cores
from planish.einsum.contraction import Contraction, contraction_of
from planish.einsum.deciding import fastest, label
from planish.einsum.request import Request
from planish.einsum.ways import Way, kernel_way, numpy_ways
from planish.loops.compiled import CompiledKernel
from planish.loops.level import LoopsLevel
from planish.loops.library import Library, library_of
from planish.loops.program import Program
from planish.loops.spaces import TemplateSpace
from planish.loops.verifying import verify_again
from planish.measure import exclusive
from planish.settings import Settings
from planish.store import Finalist, Store, store_at
from planish.tune import tune

Array = NDArray[Any]
NUMPY = Candidate((Library("numpy"),))
END_S = 0.35
"""Seconds of a budget that go to starting workers and to the comparison with NumPy."""
COMPARISON_S = 0.1
"""Seconds that the comparison of whole calls takes at most, unless the calls are long."""
WORTH_CORES_S = 30e-6
"""Work of fewer seconds on one core is not shared: handing it over takes some microseconds."""
FLOPS, BYTES = 5e10, 1e10
"""What a core does in a second at most, roughly: to guess which work is worth sharing."""


class BudgetError(PlanishError):
    """No kernel is known, and the budget allows no tuning."""


def plan(subscripts: str, operands: Sequence[Array], request: Request, started: float) -> Way:
    """Find the fastest way that is known or that tuning finds.

    Args:
        subscripts: as for `numpy.einsum`.
        operands: what the call was given; they are computed with while ways are timed.
        request: budget, cores and store.
        started: when the call began, by the monotonic clock.

    Raises:
        ProgramError: a kernel cannot compute it, or not just as NumPy does.
        BudgetError: nothing is known, and the budget allows no tuning.
        PlanishError: the store cannot be used, or the machine has fewer cores.
    """
    contraction = contraction_of(subscripts, operands)
    ways = list(numpy_ways(contraction, subscripts))
    level = LoopsLevel()
    cores = _worthwhile(contraction, usable_cores() if request.cores is None else request.cores)
    task = task_of(contraction, cores)
    with store_at(request.store) as store:
        known = store.best_result(task, level.steps)
        decided = known and _decided(known, contraction, task, ways)
        if decided:
            return decided
        candidate = known.candidate if known else _best_trial(level, task, store)
        run_id = None
        if candidate is None:
            candidate, run_id = _tuned(task, request, started, store)
        ways += _kernels(contraction, [candidate, _first_guess(task)], level, cores)
        with exclusive():
            way, samples = fastest(ways, contraction, operands, COMPARISON_S)
        way = _verified(way, ways, samples)
        if run_id is not None:
            _record(store, run_id, way, samples)
    return way


def task_of(contraction: Contraction, cores: int) -> Task:
    """Give the task that a contraction's tuning is stored under."""
    level = LoopsLevel()
    return Task(contraction.program, level.target(cores), (level.objectives["time_s"],), level.version)


def _worthwhile(contraction: Contraction, most: int) -> int:
    """Give how many cores to tune for: one where the work is small."""
    if most == 1:
        return 1
    program = contraction.program
    moved = sum(spec.tensor.size for spec in (*contraction.operands, contraction.result))
    itemsize = 4 if contraction.result.dtype == "float32" else 8
    seconds = max(program.flops / FLOPS, moved * itemsize / BYTES)
    return most if seconds > WORTH_CORES_S else 1


def _decided(known: Finalist, contraction: Contraction, task: Task, ways: Sequence[Way]) -> Way | None:
    """Take the way that an earlier process chose."""
    call = known.data.get("call")
    if not isinstance(call, Mapping):
        return None
    if call.get("way") != "kernel":
        return next((way for way in ways if way.name == call.get("way")), None)
    target = LoopsLevel().target(min(int(call.get("cores", 1)), task.target.cores))
    return kernel_way(contraction, known.candidate, target)


def _best_trial(level: LoopsLevel, task: Task, store: Store) -> Candidate | None:
    best = best_trial(store.trials(task.key, level.steps), task.objectives[0])
    return best.candidate if best else None


def _tuned(task: Task, request: Request, started: float, store: Store) -> tuple[Candidate, str | None]:
    left = request.budget_s - (time.monotonic() - started) - END_S
    if left <= 0:
        raise BudgetError("no kernel is known for it, and the budget allows no tuning", "Give budget_s.")
    settings = Settings(cores=task.target.cores, finalists=0)
    with suppress(AllFailedError):
        result = tune(task.program, budget=Budget(seconds=left), settings=settings, store=store)
        return result.candidate, result.run_id
    return NUMPY, None


def _first_guess(task: Task) -> Candidate:
    """Give what the search began with: the best of many noisy measurements may be no better than it."""
    program = task.program
    assert isinstance(program, Program)
    return TemplateSpace(program, task.target).start()


def _kernels(
    contraction: Contraction, candidates: Sequence[Candidate], level: LoopsLevel, cores: int
) -> list[Way]:
    schedules = dict.fromkeys(each for each in candidates if not library_of(each))
    return [kernel_way(contraction, each, level.target(n)) for each in schedules for n in sorted({1, cores})]


def _verified(way: Way, ways: Sequence[Way], samples: Mapping[str, Sequence[float]]) -> Way:
    """Take the fastest way that is right on inputs which the search did not see; NumPy's are."""
    timed = [each for each in ways if label(each) in samples and each is not way]
    timed.sort(key=lambda each: statistics.median(samples[label(each)]))
    return next((each for each in (way, *timed) if _is_right(each)), ways[0])


def _is_right(way: Way) -> bool:
    wrong = verify_again(way.call.kernel) if isinstance(way.call, CompiledKernel) else None
    if wrong:
        warnings.warn(f"a kernel of this einsum is wrong and not used: {wrong}", RuntimeWarning, stacklevel=4)
    return wrong is None


def _record(store: Store, run_id: str, way: Way, samples: Mapping[str, Sequence[float]]) -> None:
    """Store the decision as the run's result, so that no later process tunes or times again."""
    medians = {name: statistics.median(times) for name, times in samples.items()}
    theirs = min((m for name, m in medians.items() if not name.startswith("kernel")), default=None)
    taken = medians.get(label(way))
    ratio = theirs / taken if theirs and taken else 1.0
    data = {"call": {"way": way.name, "cores": way.cores, "seconds": medians}}
    store.resume_run(run_id)
    store.save_result(run_id, [Finalist(way.candidate or NUMPY, ratio, data)])
    store.finish_run(run_id)
