"""Timing beside a baseline: in turns with it, so that what else the machine does slows both down alike."""

from __future__ import annotations

import math
import statistics
import time
import weakref
from collections.abc import Callable, Sequence

from planish.measure.scratch import Scratch, write_whole
from planish.measure.timing import Runs, Samples, Timing, block_of, calls_of

PRECISE = 0.01
"""The standard error of the ratio at which measuring ends, as a share."""
PATIENCE = 30
"""How many budgets may be spent until it is so precise."""


class Yardstick:
    """The seconds that a baseline takes, as whoever measures it first finds them; all workers share them.

    It ends with the process, or the object, that made it; copies sent to other processes look at its folder.
    """

    def __init__(self) -> None:
        scratch = Scratch()
        self._file = scratch.path / "seconds"
        weakref.finalize(self, scratch.remove)

    def seconds(self, found: float) -> float:
        """Give the seconds: those found now, where nobody has found any. Hold the machine meanwhile."""
        if not self._file.exists():
            self.set(found)
        return float(self._file.read_text(encoding="ascii"))

    def set(self, seconds: float) -> None:
        """Say what the baseline takes, whatever was found; while nobody measures."""
        write_whole(self._file, repr(seconds).encode("ascii"))


class Beside:
    """Times each in turns with a baseline: how many times as long a call takes as the baseline's before it.

    With another worker busy, single times of one module vary by 14 %, and ratios of five by 3 %. Where they
    vary more it measures on, for up to 30 budgets. Nothing is cut short: `slow_factor` does not count.

    Args:
        yardstick: the seconds of the baseline.
        timing: how long to measure both together.
        now: the clock, in nanoseconds.
    """

    def __init__(
        self, yardstick: Yardstick, timing: Timing, now: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self._yardstick, self._timing, self._now = yardstick, timing, now
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
        start, budget = self._now(), self._timing.budget_s * 1e9
        base, own = block_of(baseline, self._now), block_of(run, self._now)
        self._baseline_calls = self._baseline_calls or calls_of(base, self._length)
        calls, usual, ratios = calls_of(own, self._length), list[float](), list[float]()
        while len(ratios) < self._timing.fewest or (
            len(ratios) < self._timing.most
            and self._now() < start + (budget if _error(ratios) <= PRECISE else PATIENCE * budget)
        ):
            usual.append(base(self._baseline_calls) / self._baseline_calls)
            ratios.append(own(calls) / calls / usual[-1])
        unit = self._yardstick.seconds(statistics.median(usual))
        return Samples(tuple(unit * ratio for ratio in ratios), calls)


def _error(ratios: Sequence[float]) -> float:
    """Estimate the standard error of the median, as a share of it, from the median deviation."""
    middle = statistics.median(ratios)
    deviation = statistics.median(abs(ratio - middle) for ratio in ratios)
    return 1.253 * 1.483 * deviation / middle / math.sqrt(len(ratios))
