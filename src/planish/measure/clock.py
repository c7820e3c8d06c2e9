"""Stage clock of evaluations, deadlines, and time spent waiting for a processor or for the machine."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path

from planish.core import Stage
from planish.measure.machine_lock import (
    PATIENCE_S,
    SHOWN_S,
    disturbed,
    exclusive,
    holder_of,
    opened_lock,
    waiting,
)
from planish.sandbox.protocol import PHASES, StageClockShm

_END: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def ends_by(end: float) -> Generator[None]:
    """Set a deadline of the monotonic clock for the block; the outer block's holds if it is earlier."""
    # Never later than the outer block's: a caller keeps its own deadline, whatever it calls.
    token = _END.set(min(end, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


def deadline() -> float:
    """Return the deadline, by the monotonic clock; infinite without one."""
    return _END.get()


def seconds_left(most: float = math.inf) -> float:
    """Return the seconds until the deadline, clipped to the range from 0 to a maximum."""
    return max(0.0, min(most, deadline() - time.monotonic()))


_TASKS = Path("/proc/self/task")
Delays = Mapping[str, int]
"""Nanoseconds so far, by thread."""


def runqueue_delay() -> Callable[[], float]:
    """Start now, and return a function: for which share of the time since then a thread had no core.

    It is the share of the thread that waited most. Linux reports it for every thread. Elsewhere it is the
    time in which the calling thread did not run, which holds for code that neither sleeps nor waits.
    """
    before, own, start = _delays(), time.thread_time_ns(), time.perf_counter_ns()

    def share() -> float:
        took = max(1, time.perf_counter_ns() - start)
        if before is None:
            return max(0.0, 1 - (time.thread_time_ns() - own) / took)
        # Threads that began meanwhile count from 0; those that ended are not known any more.
        now = _delays() or {}
        # The greatest and not the sum: the other threads wait for the last one.
        return max((now[thread] - before.get(thread, 0) for thread in now), default=0) / took

    return share


def _delays() -> Delays | None:
    """Read the delays of all threads; None where the system does not report them."""
    if sys.platform != "linux":
        return None
    found: dict[str, int] = {}
    with suppress(OSError):
        for thread in _TASKS.iterdir():
            with suppress(OSError, ValueError):  # it ended meanwhile
                # The second number: nanoseconds that it waited on a run queue, after those that it ran.
                found[thread.name] = int((thread / "schedstat").read_text(encoding="ascii").split()[1])
    return found or None


_CODE = {phase: code for code, phase in enumerate(PHASES)}


class Clock:
    """Stage clock that evaluators are given.

    Entering the stage "run" waits until no other timed run is under way on the machine, and keeps
    the machine until the stage is left. The wait is booked apart, as "wait"; no limit applies to
    it. Time outside every stage is booked as "worker".

    Args:
        shared: shared memory that holds the time.
        lock: the file by which timed runs exclude each other.
    """

    def __init__(self, shared: StageClockShm, lock: Path) -> None:
        self._shared = shared
        self._lock = lock
        self.restart()

    def restart(self) -> None:
        """Reset the clock for a new candidate."""
        self.failed: Stage | None = None
        self._shared.reset()
        self._phase, self._since = _CODE["worker"], time.monotonic_ns()
        self._shared.switch(self._phase, self._since, self._phase, self._since)

    def folders(self) -> Sequence[Path]:
        """Create the lock file, and return the folders that are read for it.

        It is called before the worker is confined, which could not create the file.
        """
        os.close(opened_lock(self._lock))
        return (self._lock.parent,)

    def stop(self) -> Mapping[str, float]:
        """Return the seconds by phase up to now."""
        self._turn(_CODE["worker"])
        return self._shared.seconds()

    @contextmanager
    def __call__(self, stage: Stage) -> Generator[None, None, None]:
        """Mark the block as this stage; stages nest, and time counts for the innermost."""
        outer = self._phase
        if stage == "run":
            self._turn(_CODE["wait"])
        # Booked as "wait" until it is entered: a candidate that waits for the machine must not look slow, nor
        # be timed out.
        with exclusive(self._lock) if stage == "run" else nullcontext():
            self._turn(_CODE[stage])
            self.failed = None  # an earlier stage failed, and was recovered from
            try:
                yield
            except BaseException:
                self.failed = self.failed or stage  # of nested stages the innermost
                raise
            finally:
                # To what was there before, not to "worker": stages nest, and the outer one goes on.
                self._turn(outer)

    def _turn(self, phase: int) -> None:
        now = time.monotonic_ns()
        self._shared.switch(self._phase, self._since, phase, now)
        self._phase, self._since = phase, now


_log = logging.getLogger("planish")


class LockWaits:
    """Logs, once, which other process holds the machine lock that the workers wait for.

    Args:
        lock: the file by which timed runs exclude each other.
        patience_s: seconds after which a worker times its candidate although another process holds the lock.
        shown_s: seconds after which the wait is shown.
    """

    def __init__(self, lock: Path, patience_s: float = PATIENCE_S, shown_s: float = SHOWN_S) -> None:
        self._lock, self._patience_s, self._shown_s = lock, patience_s, shown_s
        self._shown = False

    def check(self, waited_s: float, own: Collection[int]) -> tuple[str, ...]:
        """Check a worker that waits for the lock.

        Args:
            waited_s: how long it has waited, in seconds.
            own: process numbers of the executor's workers, which wait for each other.

        Returns:
            Notes for the result: none, or one that times may be disturbed.
        """
        in_vain = waited_s >= self._patience_s - self._shown_s
        if waited_s < self._shown_s or (self._shown and not in_vain):
            return ()
        holder = holder_of(self._lock)
        # Workers of one executor wait for each other as a matter of course.
        if holder is None or holder.pid in own:
            return ()
        if not self._shown:
            self._shown = True
            _log.warning(waiting(holder, self._patience_s))
        return (disturbed(holder, self._patience_s),) if in_vain else ()
