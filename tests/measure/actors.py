"""Factories that workers import by name."""

from dataclasses import dataclass

from planish.core import Candidate, Measured, Outcome, StageClock
from planish.measure import Limits, Yardstick
from planish.testing.acting import Actor, Diary

HASTY = Limits(build=0.3)


class Telling(Actor):
    """An actor with something to say."""

    notes = ("it is late",)


@dataclass(frozen=True)
class Hasty(Diary):
    """A factory that asks for limits of its own."""

    limits: Limits = HASTY


class Finder:
    """Makes evaluators that find a longer time for the baseline each time."""

    def __init__(self) -> None:
        self.yardstick, self._found = Yardstick(), 0.0

    def __call__(self) -> "Finder":
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        del candidate
        self._found += 1
        with clock("run"):
            return Measured({"cost": self.yardstick.seconds(self._found)})
