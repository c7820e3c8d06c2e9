"""Waiting for a file's lock in the main thread, which the system's alarm ends."""

from __future__ import annotations

import fcntl
import signal
import threading
from types import FrameType


class _LateError(Exception):
    """The alarm rang."""


def locked_within(descriptor: int, seconds: float) -> bool:
    """Lock a file, waiting at most so many seconds.

    It takes the lock in the moment that it is let go: a thread that waits costs each candidate a millisecond.

    Args:
        descriptor: the open file.
        seconds: to wait.

    Returns:
        Whether it is locked. False at once where this is not the main thread, or the alarm is somebody's.
    """
    ours = threading.current_thread() is threading.main_thread()
    if (
        # Python runs signal handlers in the main thread alone, so an alarm would not wake another one.
        not ours
        or signal.getitimer(signal.ITIMER_REAL)[0]
        or signal.getsignal(signal.SIGALRM) != signal.SIG_DFL
    ):
        return False
    waiting = [True]

    def ring(number: int, frame: FrameType | None) -> None:
        del number, frame
        if waiting:
            # flock goes on after a signal unless the handler raises (PEP 475).
            raise _LateError

    # Before the timer: with the default handler an alarm would end the process.
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The lock is ours: an alarm from here on must not raise.
        waiting.clear()
    except _LateError:
        return _is_locked(descriptor)
    finally:
        waiting.clear()
        # First: with the default handler a late alarm would end the process.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return True


def _is_locked(descriptor: int) -> bool:
    """Lock a file if it is free, or ours already: the alarm may have rung just after it was locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
