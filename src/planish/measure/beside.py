"""Timing beside a baseline: in turns with it, so that what else the machine does slows both down alike."""

from __future__ import annotations

import statistics
import time
import weakref
from collections.abc import Callable

from planish.measure.scratch import Scratch
from planish.measure.timing import SEARCH_TIMING, Runs, Samples, Timing, block_of, calls_of


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
            part = self._file.with_suffix(".part")
            part.write_text(repr(found), encoding="ascii")
            part.replace(self._file)
        return float(self._file.read_text(encoding="ascii"))


def time_beside(
    run: Runs,
    baseline: Runs,
    yardstick: Yardstick,
    timing: Timing = SEARCH_TIMING,
    now: Callable[[], int] = time.perf_counter_ns,
) -> Samples:
    """Measure how long a call takes, by how much longer it takes than the baseline's call just before it.

    With another worker busy, single times of one module vary by 14 %, and these by 3 %. Enter the stage "run"
    first. Nothing is cut short: `slow_factor` does not count.

    Args:
        run: what is measured.
        baseline: what it is measured beside.
        yardstick: the seconds of the baseline.
        timing: how long to measure both together.
        now: the clock, in nanoseconds.

    Returns:
        Samples in seconds of a baseline that always takes what the yardstick says.
    """
    end = now() + timing.budget_s * 1e9
    blocks = [block_of(each, now) for each in (baseline, run)]
    calls = [calls_of(block, timing) for block in blocks]
    pairs: list[list[float]] = []
    while len(pairs) < timing.fewest or (now() < end and len(pairs) < timing.most):
        pairs.append([block(n) / n for block, n in zip(blocks, calls, strict=True)])
    unit = yardstick.seconds(statistics.median(base for base, _ in pairs))
    return Samples(tuple(unit * own / base for base, own in pairs), calls[1])
