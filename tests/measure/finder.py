"""A spec that workers import by name."""

from planish.core import Candidate, Measured, Outcome, StageClock
from planish.measure import SharedBaselineTime


class Finder:
    """Makes evaluators that find a longer time for the baseline each time."""

    def __init__(self) -> None:
        self.baseline_time, self._found = SharedBaselineTime(), 0.0

    def __call__(self) -> "Finder":
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        del candidate
        self._found += 1
        with clock("run"):
            return Measured({"cost": self.baseline_time.seconds(self._found)})
