"""How long this process's threads were ready to run and had no core: others wanted it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

_TASKS = Path("/proc/self/task")
Delays = Mapping[str, int]
"""Nanoseconds so far, by thread."""


def delayed_since() -> Callable[[], float]:
    """Begin now; the function that is given tells for which share of the time since a thread had no core.

    It is the share of the thread that waited most. Linux tells it of every thread. Elsewhere it is the time
    in which the calling thread did not run, which holds for what neither sleeps nor waits.
    """
    before, own, start = _delays(), time.thread_time_ns(), time.perf_counter_ns()

    def share() -> float:
        took = max(1, time.perf_counter_ns() - start)
        if before is None:
            return max(0.0, 1 - (time.thread_time_ns() - own) / took)
        # Threads that began meanwhile count from 0; those that ended are not known any more.
        now = _delays() or {}
        # The greatest and not the sum: others wait for whoever comes last.
        return max((now[thread] - before.get(thread, 0) for thread in now), default=0) / took

    return share


def _delays() -> Delays | None:
    """Read them; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    found: dict[str, int] = {}
    with suppress(OSError):
        for thread in _TASKS.iterdir():
            with suppress(OSError, ValueError):  # it ended meanwhile
                # The second number: nanoseconds that it waited on a run queue, after those that it ran.
                found[thread.name] = int((thread / "schedstat").read_text(encoding="ascii").split()[1])
    return found or None
