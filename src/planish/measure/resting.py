"""Waiting until a library's threads, which look for more work for a while, are asleep."""

from __future__ import annotations

import time

STEP_S = 1e-3
BUSY = 0.3
"""Of a step; threads that look for work use all of it."""


def rest(longest_s: float) -> bool:
    """Wait until no thread of this process runs, and tell whether one did.

    OpenBLAS's threads look for work during up to 0.1 s after a multiplication, and take the cores from
    whatever uses several after it: that then seems to take 10 times as long, or more.

    Args:
        longest_s: seconds to wait at most.
    """
    start, ran = time.perf_counter(), False
    while True:
        before, began = time.process_time(), time.perf_counter()
        time.sleep(STEP_S)
        busy = (time.process_time() - before) / (time.perf_counter() - began) > BUSY
        ran |= busy
        if not busy or time.perf_counter() - start > longest_s:
            return ran
