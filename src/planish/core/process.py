"""State of the process: signals that stop a run, processor time, locks across forks, pauses of collection."""

from __future__ import annotations

import gc
import inspect
import os
import resource
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that ask a run to stop."""
_AGAIN_S = 0.01
_last = signal.SIGINT


def processor_s() -> float:
    """Return the processor time of this process and its ended children, in seconds."""
    used = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def stopped_by() -> signal.Signals:
    """Return the last signal that asked this process to stop; SIGINT where none did."""
    return _last


class Stops:
    """Count of the requests to stop the block of `stoppable`.

    Attributes:
        count: how often.
        number: the signal that did so last.
    """

    def __init__(self) -> None:
        self.count, self.number = 0, signal.SIGINT
        self._imports = _imports_under_way(inspect.currentframe())

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal; while the block imports a module, send it again a moment later.

        NumPy and other extension modules whose first import was cut short can never be imported again.

        Raises:
            KeyboardInterrupt: its argument is the signal's number.
        """
        global _last
        if _imports_under_way(frame) > self._imports:
            send_again(number)
            return
        self.count = self.count + 1
        self.number = _last = signal.Signals(number)
        raise KeyboardInterrupt(number)

    def once_more(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Send a signal again that came where Python can raise nothing, as while it tidies up."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            self.count -= 1
            send_again(self.number)
        else:
            sys.__unraisablehook__(unraisable)


def send_again(number: int) -> None:
    """Send a signal to the main thread a moment later, where it ends a wait: another thread's would not."""
    main = threading.main_thread().ident
    assert main is not None
    threading.Timer(_AGAIN_S, signal.pthread_kill, [main, number]).start()


def _imports_under_way(frame: FrameType | None) -> int:
    """Count the frames of the import system at and above a frame."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename == "<frozen importlib._bootstrap>"
        frame = frame.f_back
    return count


@contextmanager
def stoppable() -> Generator[Stops]:
    """Have the signals that ask to stop raise KeyboardInterrupt within the block.

    It is so for those that this process handles: `nohup` has SIGHUP ignored, and a program that uses planish
    as a library may leave SIGTERM to the system. Outside the main thread nothing changes.
    """
    stops = Stops()
    if threading.current_thread() is not threading.main_thread():
        yield stops
        return
    before = {number: handler for number in STOPPING if callable(handler := signal.getsignal(number))}
    hook = sys.unraisablehook
    sys.unraisablehook = stops.once_more
    for number in before:
        signal.signal(number, stops.stop)
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


def free_after_fork() -> Lock:
    """Return a lock that is free in a forked child, also where another thread holds it meanwhile.

    A child has the forking thread alone: a lock that another one held would never be released there.
    """
    lock = Lock()

    def free() -> None:
        if lock.locked():
            lock.release()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=free)
    return lock


@contextmanager
def gc_paused() -> Generator[None]:
    """Pause the garbage collector while many objects are created and none is freed, which halves the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
