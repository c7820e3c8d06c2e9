"""Who is compared, and how much is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planish.core import Candidate, EvaluatorSpec, Outcome

Round = list[Outcome]
"""The outcomes of the variants that were not left out, in their order."""


@dataclass(frozen=True)
class Variant:
    """One of those that are compared: the baseline, or a candidate beside it.

    Args:
        name: for people.
        candidate: what is measured.
        spec: makes its evaluator; variants may share one.
    """

    name: str
    candidate: Candidate
    spec: EvaluatorSpec


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Args:
        processes: fresh worker processes; where the time is short there are fewer, and the interval is
            wider. Two are the least, where two were asked for.
        rounds: how often each process measures everybody at most; 3 in all are the least.
        seed: of the orders.
        seconds: that all of it should take, by the clock. It takes longer where one round in each of two
            processes does, of the baseline and the first variant.
        most: processes in all, where the comparison goes on since too little is known.
    """

    processes: int = 5
    rounds: int = 3
    seed: int = 0
    seconds: float = math.inf
    most: int = 20

    def seconds_for_all(self, repeats: int) -> int:
        """Return a budget in seconds in which all repeats fit, where only so many fitted into `seconds`.

        The comparison has a part of its command's time, and the machine may be busier then: it is twice as
        much as these repeats took.
        """
        return 5 * max(1, math.ceil(2 * self.seconds * self.processes * self.rounds / max(1, repeats) / 5))
