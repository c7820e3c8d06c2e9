"""Timing several ways to compute the same thing, interleaved, so that the machine's mood hits all alike."""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from planish.core import rng
from planish.measure import exclusive, runqueue_delay, wait_for_idle_threads

LEAST = 7
"""Rounds that are timed at least."""
CALM = 0.03
"""A thread that had no core for a greater share of a block was disturbed."""
REST_S = 0.3
"""OpenBLAS's threads look for work no longer."""
Call = Callable[[], object]
_LIBRARIES = ("OPENBLAS", "OMP", "MKL", "TVM", "HL")
_THREADS = tuple(f"{library}_NUM_THREADS" for library in _LIBRARIES)


def use_one_core() -> None:
    """Start this program again with libraries kept to one thread, unless they are: they read it once."""
    if any(os.environ.get(name) != "1" for name in _THREADS):
        os.environ.update(dict.fromkeys(_THREADS, "1"))
        os.execv(sys.executable, [sys.executable, *sys.argv])


def interleaved(
    calls: Mapping[str, Call],
    seconds: float = 0.1,
    block_s: float = 3e-4,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Give the median seconds of a call, each measured in many short blocks alternately.

    Args:
        calls: name to what is timed.
        seconds: to spend on all of them.
        block_s: seconds that a block lasts at least.
        clock: tells the seconds that count.
    """
    counts = {name: _calls_in(call, block_s, clock) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    with exclusive():
        end = time.perf_counter() + seconds
        names, done = list(calls), 0
        while time.perf_counter() < end or done < 3:
            # In an order of its own each time: who comes after what empties the caches has the longer way.
            for place in rng(0, done).permutation(len(names)).tolist():
                name = names[place]
                samples[name].append(_block(calls[name], counts[name], clock) / counts[name])
            done += 1
    return {name: statistics.median(values) for name, values in samples.items()}


def rested(
    calls: Mapping[str, Call], seconds: float, block_s: float = 2e-3
) -> tuple[dict[str, list[float]], str]:
    """Give the seconds of a call, each measured in blocks alternately, when no thread of the process runs.

    Rounds in which others had the cores are left out, unless fewer than `LEAST` are left.

    Args:
        calls: name to what is timed.
        seconds: to spend on all of them.
        block_s: seconds that a block lasts at least.

    Returns:
        Seconds by name and round, and how many rounds count of how many.
    """
    counts = {name: _calls_in(call, block_s) for name, call in calls.items()}
    rounds: list[tuple[float, dict[str, float]]] = []
    end = time.perf_counter() + seconds
    while len(rounds) < LEAST or time.perf_counter() < end:
        taken: dict[str, float] = {}
        delayed = 0.0
        for place in rng(0, len(rounds)).permutation(len(calls)).tolist():
            name = list(calls)[place]
            wait_for_idle_threads(REST_S)
            calls[name]()
            share = runqueue_delay()
            taken[name] = _block(calls[name], counts[name]) / counts[name]
            delayed = max(delayed, share())
        rounds.append((delayed, taken))
    calm = [taken for delayed, taken in rounds if delayed < CALM]
    kept = calm if len(calm) >= LEAST else [taken for _, taken in sorted(rounds, key=lambda r: r[0])[:LEAST]]
    return {name: [taken[name] for taken in kept] for name in calls}, f"{len(calm)}/{len(rounds)}"


def _calls_in(call: Call, block_s: float, clock: Callable[[], float] = time.perf_counter) -> int:
    call()
    count = 1
    while (took := _block(call, count, clock)) < block_s:
        count = math.ceil(count * min(10, max(2, block_s / max(took, 1e-9))))
    return count


def _block(call: Call, count: int, clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    for _ in range(count):
        call()
    return clock() - start


def geomean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, values)))
