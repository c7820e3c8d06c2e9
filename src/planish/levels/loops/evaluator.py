"""Evaluator that builds, verifies and times schedules of one program in a worker process."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from planish.core import Candidate, Failed, Measured, Outcome, StageClock, Target
from planish.levels.loops.build import backend_of, executable_of, library_of, schedule_of
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.reference.views import Arrays
from planish.levels.loops.roofline import Roofline
from planish.levels.loops.verifying import Called, Runs, final_verifier, search_verifier
from planish.measure import SEARCH_TIMING, Clocks, Timing, time_call
from planish.measure.timing import CLOCKS
from planish.sandbox.confinement import SandboxPolicy

LAST_TIMING = Timing(budget_s=0.02, fewest=3, slow_factor=math.inf)
"""For the comparison at the end: nothing is cut short."""


@dataclass(frozen=True)
class LoopsEvaluatorSpec:
    """Makes an evaluator in a worker.

    Args:
        program: whose schedules are evaluated.
        target: where; its cores and back end count.
        timing: how long each candidate is timed.
        final: for candidates that are about to be kept: they are verified on further inputs, and measured
            each time. In the search a schedule that was measured already is not measured again, however it
            is reached.
    """

    program: Program
    target: Target
    timing: Timing = SEARCH_TIMING
    final: bool = False

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return how a worker is confined."""
        return SandboxPolicy.for_code()

    def __call__(self) -> LoopsEvaluator:
        return LoopsEvaluator(self)


class LoopsEvaluator:
    """Builds, verifies and times candidates.

    Args:
        spec: what is evaluated, and how.
        library: makes the baseline's call of a program and its arrays.
        clocks: by which calls are timed.
    """

    def __init__(
        self,
        spec: LoopsEvaluatorSpec,
        library: Callable[[Program, Arrays], Callable[[], object]] = numpy_callable,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._library, self._clocks = library, clocks
        self._program = spec.program
        self._target = spec.target
        self._timing = spec.timing
        self._remember = not spec.final
        # In a search processor time decides nothing, and trials are many.
        self._weighed = spec.target.cores == 1 and spec.final
        self._verifier = (final_verifier if spec.final else search_verifier)(self._program)
        self._roofline = Roofline(self._program, spec.target.cores)
        self._best = math.inf
        self._known: dict[tuple[str, str | None], Outcome] = {}
        # The baseline must not use more cores than the target has.
        threadpool_limits(spec.target.cores, user_api="blas")

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Build, verify, then time a candidate; another way to the same schedule has the same outcome."""
        if library_of(candidate):
            with clock("build"):
                arrays = {**self._verifier.inputs, **self._verifier.outputs}
                called = Called(lambda: self._library(self._program, arrays))
            return self._measured(called, clock)
        with clock("transform"):
            schedule = schedule_of(self._program, candidate)
        same = schedule.text, backend_of(candidate)
        if self._remember and same in self._known:
            return self._known[same]
        with clock("transform"):
            tree = lower(schedule)
        with clock("build"):
            kernel = executable_of(self._program, candidate, self._target, tree)
            bound = kernel.bind(self._verifier.inputs, self._verifier.outputs)
        outcome = self._known[same] = self._measured(bound, clock)
        return outcome

    def _measured(self, runs: Runs, clock: StageClock) -> Outcome:
        """Verify and time what computes the program; the answers of the timed calls are verified, too."""
        with clock("verify"):
            wrong = self._verifier.wrong_at_first(runs)
            if wrong is None:
                self._verifier.begin_last(runs)
        if wrong:
            return Failed("verify", "wrong answer", wrong)
        with clock("run"):
            timed = time_call(runs.repeat, self._timing, self._best, clocks=self._clocks)
        with clock("verify"):
            wrong = self._verifier.wrong_at_last()
        if wrong:
            return Failed("verify", "wrong answer", f"{wrong}, after the timed calls")
        if too_fast := self._roofline.refuses(timed.median, clock):
            return Failed("run", "faster than the machine", too_fast)
        self._best = min(self._best, timed.median)
        billions = self._program.flops / 1e9
        return Measured(
            {"time_s": timed.median, "gflops": billions / timed.median},
            timed.named({"time_s": float, "gflops": lambda s: billions / s}, one_core=self._weighed),
        )
