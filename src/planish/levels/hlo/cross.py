"""Compares what two compilers compute of a module: a result on which they disagree does not count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import (
    Candidate,
    CrossCheck,
    ExecutorFactory,
    Failed,
    Lost,
    Measured,
    Outcome,
    ScheduleError,
    StageClock,
    Task,
    evaluate_in_order,
)
from planish.levels.hlo.backend import open_backend
from planish.levels.hlo.backend.compiler import BackendError, compute
from planish.levels.hlo.edits import EditableModule, finished
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.machine import BACKENDS, versions
from planish.levels.hlo.patch import replay
from planish.levels.hlo.scored import ScoredProgram
from planish.levels.hlo.workload.examples import first_call
from planish.measure import deadline
from planish.sandbox import Limits
from planish.sandbox.confinement import SandboxPolicy

TOLERANCE = 1e-3
"""How far apart results may be, as a share of the largest number of each; see `tolerated`."""

_STEPS = {"bf16": 2.0**-7, "f16": 2.0**-10, "i8": 2.0**-7}
"""Narrow numbers, and how far the next one is, as a share of the largest of its kind or of 1."""

DISAGREE = "the back ends disagree"

_LIMITS = Limits(build=120, verify=60, worker=180)


def cross_check(
    task: Task[ScoredProgram],
    candidates: Sequence[Candidate],
    start: ExecutorFactory,
    tolerance: float = TOLERANCE,
) -> list[Outcome]:
    """Run patched modules once by every back end, on the same examples of the search.

    Args:
        task: the module and its workload.
        candidates: patches.
        start: starts the executor that evaluates them, such as `LocalExecutor`.
        tolerance: how far apart the results may be.

    Returns:
        For each candidate its `difference` as a share; or a failure "the back ends disagree", or why one of
        them does not run it; it is lost where the deadline came before.

    Raises:
        TargetError: a back end is not installed.
        PlanishError: the data is missing, or does not fit.
    """
    for name in BACKENDS:
        # Both must be there before a worker starts: a missing one is an error of the machine, not of a
        # candidate.
        versions(name)
    with start(Comparing(task.program, tolerance)) as executor:
        found = evaluate_in_order(executor, candidates, deadline())
    return [each.outcome if each else Lost("worker", "not measured") for each in found]


def cross_checks(
    task: Task[ScoredProgram], candidates: Sequence[Candidate], start: ExecutorFactory
) -> list[CrossCheck]:
    """Return for each patched module whether the back ends agree on it, by `cross_check`."""
    found: list[CrossCheck] = []
    for outcome in cross_check(task, candidates, start):
        if isinstance(outcome, Measured):
            found.append(CrossCheck(agrees=True, difference=outcome.values["difference"]))
        else:
            why = f"{outcome.reason}: {outcome.detail}" if outcome.detail else outcome.reason
            # Only a difference is an objection: a module that one compiler does not run may still be right.
            found.append(CrossCheck(agrees=False if outcome.reason == DISAGREE else None, why=why))
    return found


@dataclass(frozen=True)
class Comparing:
    """Makes what compares the back ends, in a worker.

    Args:
        program: the original module and its workload.
        tolerance: how far apart the results may be.
        limits: of one comparison.
    """

    program: ScoredProgram
    tolerance: float = TOLERANCE
    limits: Limits = _LIMITS

    @property
    def sandbox(self) -> SandboxPolicy:
        """The sandbox of the worker."""
        return SandboxPolicy.for_code()

    def __call__(self) -> _Comparison:
        return _Comparison(self)


class _Comparison:
    def __init__(self, spec: Comparing) -> None:
        self._spec, self._program = spec, spec.program
        self._types, self._arrays = first_call(self._program.module, self._program.workload)
        self._backends = [open_backend(name) for name in BACKENDS]

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Run a patched module by each back end, and compare the results."""
        with clock("transform"):
            try:
                module = replay(self._program.module, candidate)
            except ScheduleError as error:
                return Failed("transform", "not legal", str(error))
            text = entry_text(finished(module), module.function)
        results: list[list[NDArray[Any]]] = []
        for backend in self._backends:
            try:
                with clock("build"):
                    executable = backend.compile(text)
                with clock("verify"):
                    results.append(compute(backend, executable, self._types, self._arrays))
            except BackendError as error:
                return Failed("verify", f"does not run by {backend.name}", error.message)
        found = [difference(a, b) for a, b in zip(*results, strict=True)]
        if max(found) > tolerated(module, self._spec.tolerance):
            position = int(np.argmax(found))
            what = f"result {position} differs by {found[position]:.3g} of its largest number"
            return Failed("verify", DISAGREE, what)
        return Measured({"difference": max(found)})


def tolerated(module: EditableModule, tolerance: float = TOLERANCE) -> float:
    """Return how far apart results may be: by a step of the narrowest numbers that a module reads, if more.

    Two compilers add in different orders; a sum that lies between two narrow numbers is rounded up by one of
    them, and down by the other.

    Args:
        module: the module.
        tolerance: for wide floats.
    """
    read = {type_.element for info in module.infos.values() for type_ in info.operands if type_}
    return max([tolerance, *(_STEPS.get(element, 0.0) for element in read)])


def difference(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the largest difference as a share of the largest number; infinite where one alone is NaN."""
    a, b = (array.astype(np.float64) for array in (one, other))
    finite = np.isfinite(a) & np.isfinite(b)
    # Infinities of the same sign are equal, too.
    same = np.where(np.isnan(a), np.isnan(b), a == b)
    if not (finite | same).all():
        return np.inf
    if not finite.any():
        return 0.0
    # The smallest normal number, so that zeros are not divided by zero.
    largest = max(np.abs(a[finite]).max(), np.abs(b[finite]).max(), np.finfo(np.float32).tiny)
    return float(np.abs(a[finite] - b[finite]).max() / largest)
