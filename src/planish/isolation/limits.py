"""What an evaluation may use before it is ended."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

from planish.core import EvaluatorSpec, HasLimits


@dataclass(frozen=True)
class Limits:
    """The limits of one evaluation.

    A limit holds for all that a candidate spends in a stage, also when it enters it several times.

    Args:
        transform: seconds to apply the steps.
        build: seconds to make the code.
        verify: seconds to check the answer.
        run: seconds to measure; the wait for the machine is not counted.
        worker: seconds outside the stages, and to start a worker and make its evaluator.
        attempts: how often a candidate is evaluated that is lost with its worker each time.
        lifetime: evaluations after which a worker is replaced, because what it runs leaks; None: never.
        memory_bytes: data that a worker may have beyond what it has at its start (Linux:
            RLIMIT_DATA, for each process apart; shared memory is not counted).
    """

    transform: float = 10.0
    build: float = 10.0
    verify: float = 20.0
    run: float = 20.0
    worker: float = 60.0
    attempts: int = 3
    lifetime: int | None = None
    memory_bytes: int = 4 << 30

    @staticmethod
    def of(spec: EvaluatorSpec) -> "Limits":
        """Give the limits that a spec asks for (`planish.core.HasLimits`); else the usual ones."""
        return (spec.limits if isinstance(spec, HasLimits) else None) or Limits()

    @staticmethod
    def widest(several: Iterable["Limits"]) -> "Limits":
        """Give what suffices for evaluations under any of several limits; the shortest lifetime counts."""
        limits = list(several)
        # The shortest: what leaks for one leaks in the worker of all.
        lives = [each.lifetime for each in limits if each.lifetime is not None]
        most = {
            f.name: max(getattr(each, f.name) for each in limits)
            for f in fields(Limits)
            if f.name != "lifetime"
        }
        return Limits(**most, lifetime=min(lives, default=None))

    def seconds(self, phase: str) -> float:
        """Give the limit of a phase of the clock; "wait", for the machine, has none."""
        return math.inf if phase == "wait" else getattr(self, phase)
