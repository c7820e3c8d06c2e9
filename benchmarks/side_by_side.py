"""Timing several ways to compute the same thing, interleaved, so that the machine's mood hits all alike."""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from planish.measure import exclusive

Call = Callable[[], object]
_LIBRARIES = ("OPENBLAS", "OMP", "MKL", "TVM", "HL")
_THREADS = tuple(f"{library}_NUM_THREADS" for library in _LIBRARIES)


def use_one_core() -> None:
    """Start this program again with libraries kept to one thread, unless they are: they read it once."""
    if any(os.environ.get(name) != "1" for name in _THREADS):
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        os.execv(sys.executable, [sys.executable, *sys.argv])


def interleaved(calls: Mapping[str, Call], seconds: float = 0.1, block_s: float = 3e-4) -> dict[str, float]:
    """Give the median seconds of a call, each measured in many short blocks by turns.

    Args:
        calls: name to what is timed.
        seconds: to spend on all of them.
        block_s: seconds that a block lasts at least.
    """
    counts = {name: _calls_in(call, block_s) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    with exclusive():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(next(iter(samples.values()))) < 3:
            for name, call in calls.items():
                samples[name].append(_block(call, counts[name]) / counts[name])
    return {name: statistics.median(values) for name, values in samples.items()}


def _calls_in(call: Call, block_s: float) -> int:
    call()
    count = 1
    while (took := _block(call, count)) < block_s:
        count = math.ceil(count * min(10, max(2, block_s / took)))
    return count


def _block(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def geomean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))
