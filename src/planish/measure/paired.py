"""Timing beside a baseline: in turns with it, so that what else the machine does slows both down alike."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from planish.isolation.scratch import share, write_whole
from planish.measure.samples import Samples, error
from planish.measure.timed_blocks import CLOCKS, Clocks, Runs, calls_of, timed
from planish.measure.timing import Timing

PRECISE = 0.01
"""The standard error of the ratio at which measuring ends, as a share."""
PATIENCE = 30
"""How many budgets may be spent until it is so precise."""


class Yardstick:
    """The seconds that a baseline takes. The first worker to measure them sets them for all.

    It ends with the process, or the object, that made it; copies sent to other processes look at its folder.
    """

    def __init__(self) -> None:
        self._file = share(self) / "seconds"

    def seconds(self, found: float) -> float:
        """Give the seconds: those found now, where nobody has found any. Hold the machine meanwhile."""
        if self.known is None:
            self.set(found)
        return float(self._file.read_text(encoding="ascii"))

    @property
    def known(self) -> float | None:
        """The seconds, where somebody has found or said them."""
        return float(self._file.read_text(encoding="ascii")) if self._file.exists() else None

    def set(self, seconds: float) -> None:
        """Say what the baseline takes, whatever was found; while nobody measures."""
        write_whole(self._file, repr(seconds).encode("ascii"))


class Beside:
    """Times candidates in turns with a baseline: each block of calls is over the baseline's before it.

    With another worker busy, single times of one module vary by 14 %, and ratios of five by 3 %. Where they
    vary more it measures on, as long as `patience` allows. Where one core does the work, and processor time
    is clearly more precise, that counts. The timing's slow factor is one to the baseline.

    Args:
        yardstick: the seconds of the baseline.
        timing: how long to measure both together.
        one_core: whether one core does all the work; else processor time does not tell how long it takes.
        patience: how many budgets may be spent until the ratio is as precise as `PRECISE`.
        clocks: by which.
    """

    def __init__(
        self,
        yardstick: Yardstick,
        timing: Timing,
        *,
        one_core: bool = True,
        patience: int = PATIENCE,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._yardstick, self._timing, self._clocks = yardstick, timing, clocks
        self._one_core, self._patience = one_core, patience
        # By two: the baseline has half of the budget.
        self._length = max(timing.block_s, timing.budget_s / timing.most / 2)
        self._baseline_calls = 0

    def time(self, run: Runs, baseline: Runs) -> Samples:
        """Measure how long a call takes; enter the stage "run" first.

        Args:
            run: what is measured.
            baseline: what it is measured beside, always the same.

        Returns:
            Samples in seconds of a baseline that always takes what the yardstick says.
        """
        start = self._clocks.wall()
        base, own = timed(baseline, self._clocks), timed(run, self._clocks)
        # Once, for the baseline never changes; to warm it up for each candidate would take a share of each
        # budget.
        self._baseline_calls = self._baseline_calls or calls_of(lambda n: base(n).wall, self._length)
        calls, usual = calls_of(lambda n: own(n).wall, self._length), list[float]()
        wall, processor = list[float](), list[float]()
        while not (slow := self._is_slow(processor or wall)) and self._goes_on(wall, processor, start):
            # One directly after the other: the closer in time, the more of what disturbs is common to both.
            before, took = base(self._baseline_calls), own(calls)
            share = self._baseline_calls / calls
            usual.append(before.wall / self._baseline_calls)
            wall.append(took.wall / before.wall * share)
            if self._one_core and before.processor > 0:  # a clock that ticks seldom may show nothing
                processor.append(took.processor / before.processor * share)
        # One unit for all workers: ratios times what each worker found itself would differ by its luck.
        unit = self._yardstick.seconds(statistics.median(usual))
        by_clock, by_processor = (tuple(unit * ratio for ratio in ratios) for ratios in (wall, processor))
        # All or none: medians of different rounds are not to be compared.
        known = len(processor) == len(wall)
        return Samples(by_clock, calls, slow, by_processor if known else (), paired=True)

    def _is_slow(self, ratios: Sequence[float]) -> bool:
        """Whether it is so slow that two looks are enough; one may have been unlucky."""
        return len(ratios) > 1 and min(ratios) > self._timing.slow_factor

    def _goes_on(self, wall: Sequence[float], processor: Sequence[float], start: int) -> bool:
        timing = self._timing
        # The better of the two: either may be what the verdict rests on.
        precise = min(error(wall), error(processor)) <= PRECISE
        end = start + (1 if precise else self._patience) * timing.budget_s * 1e9
        return len(wall) < timing.fewest or (len(wall) < timing.most and self._clocks.wall() < end)
