"""Timed runs on one machine exclude each other, whichever process they belong to."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Event, Lock, RLock, Thread, get_ident

from planish.core import PlanishError
from planish.measure.alarm import locked_within
from planish.measure.machine_lock import LockHolder, holder_of, machine_lock, opened_lock

PATIENCE_S = 60.0
"""Seconds that are waited for one who keeps the machine. Then a run is timed beside that one."""
SHOWN_S = 2.0
"""Seconds after which it is shown who keeps the machine."""

_log = logging.getLogger("planish")


class _Holder:
    """This process's hold on one lock file."""

    def __init__(self) -> None:
        self.threads = RLock()
        self.depth = 0
        self.owner = 0
        self.given_up: LockHolder | None = None


@cache
# One for each file and process: flock's locks belong to open files, so a second descriptor of this process
# would wait for the first one.
def _holder(_path: Path) -> _Holder:
    return _Holder()


@contextmanager
def exclusive(path: Path | None = None, patience_s: float | None = None) -> Generator[None, None, None]:
    """Wait for the machine, and keep it to oneself for the block.

    It may be nested. The kernel releases the lock when a process dies, so a crash blocks nobody. The wait is
    shown after 2 s, and bounded: where one process keeps the machine for 60 s, the block is entered beside
    it. Costs about 10 microseconds where nobody else wants the machine.

    Args:
        path: the lock file; it is made where missing. None for the machine's (see `machine_lock`).
        patience_s: after so many seconds of waiting the block is entered beside whoever has the machine; 60
            by default.

    Raises:
        PlanishError: the file cannot be made or opened.
    """
    path = path or machine_lock()
    patience_s = PATIENCE_S if patience_s is None else patience_s
    holder = _holder(path)
    # Threads exclude each other by this, since the file's lock is the whole process's.
    with holder.threads:
        descriptor = None if holder.depth else _locked(path, holder, patience_s)
        holder.depth += 1
        holder.owner = get_ident()
        try:
            yield
        finally:
            holder.depth -= 1
            if descriptor is not None:
                _release(descriptor)


def is_held(path: Path | None = None) -> bool:
    """Tell whether this thread has the machine to itself now."""
    holder = _holder(path or machine_lock())
    return holder.depth > 0 and holder.owner == get_ident()


def _locked(path: Path, holder: _Holder, patience_s: float) -> int | None:
    """Give a descriptor that holds the lock; None where there was no more patience."""
    try:
        while True:
            descriptor = opened_lock(path)
            if not _taken(descriptor, path, holder, patience_s):
                return None
            with _released_on_error(descriptor):
                # Else two processes would each hold a lock, on a file that is deleted and on the one made
                # after it.
                current = _is_current(descriptor, path)
            if current:
                holder.given_up = None
                return descriptor
            os.close(descriptor)
    except OSError as error:
        raise PlanishError(
            f"the lock of timed runs cannot be used: {error}",
            f"See to {path}, or name another: PLANISH_LOCK.",
        ) from error


def _taken(descriptor: int, path: Path, holder: _Holder, patience_s: float) -> bool:
    """Lock a file, or let it go where one process keeps it for too long, or the wait is interrupted."""
    with _released_on_error(descriptor):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        since = time.monotonic()
        if patience_s >= SHOWN_S and holder.given_up is None and locked_within(descriptor, SHOWN_S):
            return True
    waiter = _Waiter(descriptor)
    try:
        return _outlasted(waiter, path, holder, patience_s, since) or waiter.give_up()
    except BaseException:
        if waiter.give_up():
            _release(descriptor)
        raise


def _outlasted(waiter: _Waiter, path: Path, holder: _Holder, patience_s: float, since: float) -> bool:
    """Wait on, and show it; tells whether the file was locked before patience ended."""
    if patience_s < SHOWN_S:
        return waiter.wait(patience_s)
    keeper, shown, pause = holder_of(path), False, max(0.0, since + SHOWN_S - time.monotonic())
    # Who was given up on once is not waited for again, or each timed run would take a minute.
    while keeper is None or keeper != holder.given_up:
        if waiter.wait(pause):
            return True
        pause = SHOWN_S
        now = holder_of(path)
        if now != keeper:
            keeper, since = now, time.monotonic()  # patience is for each keeper anew
        if not shown:
            _log.warning(waiting(keeper))
            shown = True
        if time.monotonic() - since >= patience_s:
            _log.warning(disturbed(keeper))
            break
    holder.given_up = keeper
    return False


def waiting(keeper: LockHolder | None) -> str:
    """Say who keeps the machine."""
    return f"waiting for the machine, {PATIENCE_S:g} s at most: {keeper or 'another process'} times something"


def disturbed(keeper: LockHolder | None) -> str:
    """Say what becomes of timings beside one who does not let the machine go."""
    who = keeper or "another process"
    return f"times may be disturbed: {who} kept the machine for over {PATIENCE_S:g} s"


class _Waiter:
    """Waits for a lock in a thread of its own, since the system knows no end to that wait.

    A loop that tried again and again would give in later, and disturb who is timing.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._taken, self._guard, self._given_up = Event(), Lock(), False
        Thread(target=self._take, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        return self._taken.wait(seconds)

    def give_up(self) -> bool:
        """Let the file go, unless it was locked just now; tells whether it was."""
        # The guard makes both sides agree: the lock is either reported as taken, or let go by the thread.
        with self._guard:
            self._given_up = not self._taken.is_set()
            return not self._given_up

    def _take(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._guard:
            if self._given_up:
                _release(self._descriptor)
            else:
                self._taken.set()


@contextmanager
def _released_on_error(descriptor: int) -> Generator[None]:
    """Let a file go where the block is broken off, as by Ctrl-C: nobody else would."""
    try:
        yield
    except BaseException:
        _release(descriptor)
        raise


def _release(descriptor: int) -> None:
    # A forked child may have the file open too, so closing it is not enough.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _is_current(descriptor: int, path: Path) -> bool:
    """Whether the path still names the open file; somebody may have deleted it while we waited."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
