"""Builds, verifies and times schedules of one program; lives in a worker process."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from planish.core import Candidate, Failed, Measured, Outcome, StageClock, Target
from planish.loops.build import kernel_of, schedule_of
from planish.loops.library import backend_of, library_of
from planish.loops.lowering import lower
from planish.loops.numpy_baseline import numpy_callable
from planish.loops.program import Program
from planish.loops.reference import aligned, check, make_inputs, reference
from planish.measure import SEARCH_TIMING, Timing, repeated, time_call

INPUT_SEED = 0
LAST_TIMING = Timing(budget_s=0.02, fewest=3, slow_factor=math.inf)
"""For the comparison at the end: nothing is cut short."""


@dataclass(frozen=True)
class LoopsEvaluator:
    """Makes an evaluator in a worker.

    Args:
        program: whose schedules are evaluated.
        target: where; its cores and back end count.
        timing: how long each candidate is timed.
        remember: whether a schedule that was measured already is not measured again, however it is reached.
    """

    program: Program
    target: Target
    timing: Timing = SEARCH_TIMING
    remember: bool = True

    def __call__(self) -> _Evaluator:
        return _Evaluator(self)


class _Evaluator:
    def __init__(self, recipe: LoopsEvaluator) -> None:
        self._program = recipe.program
        self._target = recipe.target
        self._timing = recipe.timing
        self._remember = recipe.remember
        self._inputs = make_inputs(self._program, INPUT_SEED)
        self._expected = reference(self._program, self._inputs)
        self._outputs = {n: aligned(self._program.type[n]) for n in self._program.outputs}
        self._best = math.inf
        self._known: dict[tuple[str, str | None], Outcome] = {}
        # The baseline must not use more cores than the target has.
        threadpool_limits(recipe.target.cores, user_api="blas")

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Build, verify, then time a candidate; another way to the same schedule has the same outcome."""
        if library_of(candidate):
            with clock("build"):
                call = numpy_callable(self._program, {**self._inputs, **self._outputs})
            return self._measured(repeated(call), clock)
        with clock("transform"):
            schedule = schedule_of(self._program, candidate)
        same = schedule.text, backend_of(candidate)
        if self._remember and same in self._known:
            return self._known[same]
        with clock("transform"):
            tree = lower(schedule)
        with clock("build"):
            kernel = kernel_of(self._program, candidate, self._target, tree)
            repeat = kernel.bind(self._inputs, self._outputs).repeat
        outcome = self._known[same] = self._measured(repeat, clock)
        return outcome

    def _measured(self, repeat: Callable[[int], object], clock: StageClock) -> Outcome:
        """Verify and time what runs n times; outputs are poisoned first, so that one not written shows."""
        with clock("verify"):
            for array in self._outputs.values():
                array.fill(math.nan)
            repeat(1)
            wrong = check(self._program, self._outputs, self._expected)
        if wrong:
            return Failed("verify", "wrong answer", wrong)
        with clock("run"):
            timed = time_call(repeat, self._timing, self._best)
        self._best = min(self._best, timed.median)
        rates = tuple(self._program.flops / s / 1e9 for s in timed.seconds)
        return Measured(
            {"time_s": timed.median, "gflops": self._program.flops / timed.median / 1e9},
            {"time_s": timed.seconds, "gflops": rates},
        )
