"""Work whose amount is known, and an evaluator that times it; see `verdicts.py`."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

from planish.core import Candidate, Measured, Outcome, StageClock, Step
from planish.measure import Beside, Runs, Timing, Yardstick, time_call

TIMING = Timing(budget_s=0.05, block_s=1e-3, fewest=5, most=50, slow_factor=math.inf)


@dataclass(frozen=True)
class Work(Step):
    """So many rounds of PBKDF2: no memory, and no pause."""

    rounds: int = 1


@dataclass(frozen=True)
class Worker:
    """Makes what times work.

    Args:
        baseline: rounds that it is timed beside, in turns, as models and modules are; 0: each is timed alone,
            as loops and programs are.
        yardstick: what the baseline takes.
    """

    baseline: int
    yardstick: Yardstick

    def __call__(self) -> Worker:
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Time the work that a candidate stands for."""
        (step,) = candidate.steps
        assert isinstance(step, Work)
        with clock("run"):
            if self.baseline:
                beside = Beside(self.yardstick, TIMING, patience=4)
                timed = beside.time(calls(step.rounds), calls(self.baseline))
            else:
                timed = time_call(calls(step.rounds), TIMING)
        return Measured({"time_s": timed.median}, timed.named({"time_s": float}, one_core=True))


def calls(rounds: int) -> Runs:
    """Give what does some work n times."""

    def run(count: int) -> None:
        for _ in range(count):
            hashlib.pbkdf2_hmac("sha256", b"planish", b"verdicts", rounds)

    return run
