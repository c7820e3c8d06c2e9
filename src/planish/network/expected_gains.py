"""Division of the time of a compilation between choices and schedules, by what each is expected to gain.

A choice, such as that of the algorithms of convolutions, is measured in the whole network, one alternative
after the other. The search for schedules has the rest of the time. So before each measurement, the seconds of
a run of the network that it is expected to gain are compared with those that the search loses with the time.
What the alternatives of a choice gain is taken to be what earlier ones gained in this network.
"""

from __future__ import annotations

import time
from collections import defaultdict
from math import log

FIRST_GAIN = 0.02
"""Share of the time of a choice's layers that its first alternative is expected to gain over estimates.

As much counts as one measurement. By the ablation of AutoTVM's figure 11, estimates choose well.
"""
SEARCH_GAIN = 0.06
"""Share of what a kernel could gain at most that its search gains while its time grows by a factor of e.

Default schedules are at 0.96 of what ten seconds of a search find, by `benchmarks/first_schedules.py`, and
about a quarter of their time is above the bound of the roofline.
"""


class ExpectedGains:
    """Expected gains of measurements, beside that of the search for schedules.

    Args:
        seconds: for measurements and for the search; None for no limit.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._cost_s, self._rest, self._kernels = 0.0, 0.0, 0
        self._gains = defaultdict[str, list[float]](lambda: [FIRST_GAIN])

    def note_measurement(self, took: float, rest: float, kernels: int) -> None:
        """Note what a measurement took, and what the search for schedules is about.

        Args:
            took: seconds of the measurement; the next one is expected to take as long.
            rest: seconds of a run of the network that better schedules could gain at most.
            kernels: distinct ones that can be tuned.
        """
        self._cost_s, self._rest, self._kernels = took, rest, kernels

    def note_gain(self, choice: str, before: float, after: float) -> None:
        """Note what an alternative of a choice gained.

        Args:
            choice: in a word.
            before: seconds of its layers with the best of the other alternatives.
            after: with the best of all.
        """
        if before > 0:
            self._gains[choice].append(1 - after / before)

    def is_worth(self, choice: str, seconds: float | None = None) -> bool:
        """Return whether the next alternative of a choice should be measured.

        Args:
            choice: in a word.
            seconds: of its layers in a run of the network; None where they are not known yet.
        """
        if self._end is None:
            return True
        left = self._end - time.monotonic()
        if left <= self._cost_s:
            return False
        if seconds is None:
            return True
        gains = self._gains[choice]
        # Each kernel's first second is its share of the logarithm's argument.
        lost = log((self._kernels + left) / (self._kernels + left - self._cost_s))
        return seconds * sum(gains) / len(gains) >= SEARCH_GAIN * self._rest * lost
