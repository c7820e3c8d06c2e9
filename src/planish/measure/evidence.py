"""What the clock and processor time say of a ratio, and which of them decides."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import Ratio
from planish.measure.samples import CLEARLY


@dataclass(frozen=True)
class Evidence:
    """A ratio to the baseline, by both clocks.

    On a machine that others keep busy the time by the clock tells mostly who had to wait, and processor time
    is up to 20 times as precise. Where one core does all the work, without a pause, both stand for the same.
    So processor time decides where it is clearly more precise, unless it claims more than the clock allows: a
    program that sleeps, or waits for a disk, gains nothing by less processor time. That the clock claims more
    is usual: on a busy machine a longer call is interrupted more often, and its median then jumps. Where one
    says better and the other worse, nothing is decided.

    Args:
        wall: by the clock.
        processor: by processor time; None where that is not known, or does not tell how long it takes.
    """

    wall: Ratio
    processor: Ratio | None = None

    @property
    def clocks_disagree(self) -> bool:
        """Return whether processor time claims a difference that the clock rules out."""
        if self.processor is None:
            return False
        # Only beyond 1, too: that the clock claims more than processor time is usual on a busy machine.
        better = self.processor.high < min(self.wall.low, 1.0)
        worse = self.processor.low > max(self.wall.high, 1.0)
        return better or worse

    @property
    def contradictory(self) -> bool:
        """Whether one clock says better and the other worse."""
        if self.processor is None:
            return False
        low, high = sorted((self.wall, self.processor), key=lambda each: each.value)
        return low.high < 1.0 < high.low

    @property
    def by_processor(self) -> bool:
        """Whether processor time decides."""
        # Clearly: where both are about as precise, the clock is what the user asked for. And with some noise:
        # where processor time shows none, it ticks too seldom to tell.
        clearer = self.processor is not None and 0 < self.processor.width < CLEARLY * self.wall.width
        return clearer and not self.clocks_disagree

    @property
    def ratio(self) -> Ratio:
        """The one that decides; where they contradict each other, an interval that holds both."""
        if self.processor is not None and self.contradictory:
            ends = (self.wall.low, self.wall.high, self.processor.low, self.processor.high)
            return Ratio(self.wall.value, min(ends), max(ends))
        return self.processor if self.processor is not None and self.by_processor else self.wall
