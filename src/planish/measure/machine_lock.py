"""Machine lock: timed runs on one machine exclude each other."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from platform import node
from threading import Event, Lock, RLock, Thread, get_ident
from types import FrameType

from planish.core import PlanishError, cache_folder, private_folder
from planish.core.errors import redact
from planish.sandbox.workers import WORKER


class _TimeoutError(Exception):
    """The lock was not free within the time."""


def flock_timeout(descriptor: int, seconds: float) -> bool:
    """Lock a file by `flock`, with a timeout.

    It uses SIGALRM, so that it gets the lock at the moment when it is released: a thread that waits costs
    each candidate a millisecond.

    Args:
        descriptor: of the open file.
        seconds: the timeout.

    Returns:
        True once it is locked. False after the timeout, and at once where this is not the main thread, or
        SIGALRM is in use.
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
            raise _TimeoutError

    # Before the timer: with the default handler an alarm would end the process.
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The lock is ours: an alarm from here on must not raise.
        waiting.clear()
    except _TimeoutError:
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


VARIABLE = "PLANISH_LOCK"
_HINT = f"Name a file that you may use: {VARIABLE}=FILE."
_SHOWN = 120


@dataclass(frozen=True)
class LockHolder:
    """A process that holds a lock.

    Args:
        pid: its number.
        command: its command line, or that of the process it works for; cut where it is long.
    """

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})" if self.command else f"process {self.pid}"


@cache
def machine_lock() -> Path:
    """Return the lock file: the one that PLANISH_LOCK names, which users may share, else this user's own.

    By itself, planish makes nothing that all users can write to: the file is in the user's folder of caches,
    which all sessions of the user have in common, or else in the runtime folder. So users exclude each other
    only where an administrator makes a file for them.

    Raises:
        PlanishError: the file that is named cannot be used, or the user has no folder of their own.
    """
    if named := os.environ.get(VARIABLE):
        return _checked(Path(named).absolute())
    name = f"timing-{node() or 'machine'}.lock"  # a home may be shared by machines
    with suppress(PlanishError):
        return cache_folder() / name
    try:
        runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")
        return private_folder(runtime / "planish") / name
    except OSError as error:
        raise PlanishError(f"no folder can hold the lock of timed runs: {error}", _HINT) from error


def _checked(path: Path) -> Path:
    """Open a lock file once, so that a wrong name is an error before any worker is started.

    Raises:
        PlanishError: it cannot be opened.
    """
    try:
        os.close(opened_lock(path))
    except OSError as error:
        why = "it is a folder" if path.is_dir() else str(error)
        raise PlanishError(f"{VARIABLE}={path} cannot be used: {why}", _HINT) from error
    return path


def opened_lock(path: Path) -> int:
    """Open a lock file; one that is missing is made for this user alone.

    Returns:
        A descriptor.

    Raises:
        OSError: it is a link, no plain file, or in a folder where others could have made it.
    """
    # O_NONBLOCK: opening a FIFO that was put there would otherwise wait for ever.
    # O_NOFOLLOW and O_CLOEXEC: a link could name a file of another user, and programs that are run inherit
    # no lock.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        if path.parent.stat().st_mode & 0o022:
            raise PermissionError(f"others may write to {path.parent}: make the file beforehand") from None
        with suppress(FileExistsError):  # another process made it meanwhile: that one is opened
            # Exclusively: else a link that was put there just now would be followed.
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file")
    return descriptor


def holder_of(path: Path) -> LockHolder | None:
    """Return the process that holds a lock; None where there is none, or the system does not report it."""
    if sys.platform != "linux":
        return None
    with suppress(OSError, ValueError):
        found = path.stat()
        # As the kernel writes it: the device in hexadecimal digits, the inode in decimal ones.
        inode = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            # "1: FLOCK  ADVISORY  WRITE 1234 08:02:131073 0 EOF"; a waiting process has an arrow after "1:".
            words = line.split()
            if words[1] == "FLOCK" and words[5] == inode:
                return LockHolder(int(words[4]), _command(int(words[4])))
    return None


def _command(pid: int) -> str:
    """Return the command line of a process; of a worker, that of the process that it works for."""
    with suppress(OSError, ValueError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if WORKER in words:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
            return _command(int(status.partition("PPid:")[2].split()[0]))
        # A command line is another program's text: control characters in it must not steer the terminal.
        text = redact(" ".join("".join(c if c.isprintable() else " " for c in " ".join(words)).split()))
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return ""


PATIENCE_S = 60.0
"""Seconds to wait for one process that holds the machine; then a run is timed although that one runs."""
SHOWN_S = 2.0
"""Seconds after which the process that holds the machine is shown."""

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
def exclusive(
    path: Path | None = None, patience_s: float = PATIENCE_S, shown_s: float = SHOWN_S
) -> Generator[None]:
    """Hold the machine lock for the block, so that no other timed run is under way.

    It may be nested. The kernel releases the lock when a process dies, so a crash blocks no other process.
    The wait is shown after 2 s, and bounded: where one process holds the machine for 60 s, the block is
    entered without the lock. Costs about 10 microseconds where no other process wants the machine.

    Args:
        path: the lock file; it is made where missing. None for the machine's (see `machine_lock`).
        patience_s: seconds after which the block is entered without the lock.
        shown_s: seconds after which the wait is shown.

    Raises:
        PlanishError: the file cannot be made or opened.
    """
    path = path or machine_lock()
    holder = _holder(path)
    # Threads exclude each other by this, since the file's lock is the whole process's.
    with holder.threads:
        descriptor = None if holder.depth else _Acquisition(path, holder, patience_s, shown_s).acquire()
        holder.depth += 1
        holder.owner = get_ident()
        try:
            yield
        finally:
            holder.depth -= 1
            if descriptor is not None:
                _release(descriptor)


def is_held(path: Path | None = None) -> bool:
    """Return whether this thread holds the machine lock."""
    holder = _holder(path or machine_lock())
    return holder.depth > 0 and holder.owner == get_ident()


@dataclass(frozen=True)
class _Acquisition:
    """An attempt to get a lock."""

    path: Path
    holder: _Holder
    patience_s: float
    shown_s: float

    def acquire(self) -> int | None:
        """Return a descriptor that holds the lock; None after the timeout."""
        try:
            while True:
                descriptor = opened_lock(self.path)
                if not self._locked(descriptor):
                    return None
                with _released_on_error(descriptor):
                    # Else two processes would each hold a lock, on a file that is deleted and on the one made
                    # after it.
                    current = _is_current(descriptor, self.path)
                if current:
                    self.holder.given_up = None
                    return descriptor
                os.close(descriptor)
        except OSError as error:
            raise PlanishError(
                f"the lock of timed runs cannot be used: {error}",
                f"Check {self.path}, or name another: PLANISH_LOCK.",
            ) from error

    def _locked(self, descriptor: int) -> bool:
        """Lock a file; release it where one process holds it for too long, or the wait is interrupted."""
        with _released_on_error(descriptor):
            if _is_locked(descriptor):
                return True
            since, shows = time.monotonic(), self.patience_s >= self.shown_s
            if shows and self.holder.given_up is None and flock_timeout(descriptor, self.shown_s):
                return True
        waiter = _Waiter(descriptor)
        try:
            return self._outlasted(waiter, since) or waiter.give_up()
        except BaseException:
            if waiter.give_up():
                _release(descriptor)
            raise

    def _outlasted(self, waiter: _Waiter, since: float) -> bool:
        """Wait on, and show it; return whether the file was locked before the timeout."""
        if self.patience_s < self.shown_s:
            return waiter.wait(self.patience_s)
        other, shown = holder_of(self.path), False
        pause = max(0.0, since + self.shown_s - time.monotonic())
        # A process that was given up on is not waited for again, or each timed run would take a minute.
        while other is None or other != self.holder.given_up:
            if waiter.wait(pause):
                return True
            pause = self.shown_s
            now = holder_of(self.path)
            if now != other:
                other, since = now, time.monotonic()  # the timeout is for each process anew
            if not shown:
                _log.warning(waiting(other, self.patience_s))
                shown = True
            if time.monotonic() - since >= self.patience_s:
                _log.warning(disturbed(other, self.patience_s))
                break
        self.holder.given_up = other
        return False


def waiting(holder: LockHolder | None, patience_s: float = PATIENCE_S) -> str:
    """Return the message that a run waits for the process that holds the machine."""
    timing = f"{holder or 'another process'} is timing a program"
    return f"waiting for the machine, at most {patience_s:g} s: {timing}"


def disturbed(holder: LockHolder | None, patience_s: float = PATIENCE_S) -> str:
    """Return the note on times that were measured while another process held the machine."""
    other = holder or "another process"
    return f"times may be disturbed: {other} kept the machine for over {patience_s:g} s"


class _Waiter:
    """Waits for a lock in a thread of its own, since the system has no timeout for that wait.

    A loop that polled would get the lock later, and disturb the run that is timed meanwhile.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._taken, self._guard, self._given_up = Event(), Lock(), False
        Thread(target=self._take, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        return self._taken.wait(seconds)

    def give_up(self) -> bool:
        """Release the file, unless it was locked just now; return whether it was."""
        # The guard makes both sides agree: the lock is either reported as taken, or released by the thread.
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
    """Release a file where the block is interrupted, as by Ctrl-C: no other code would."""
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
    """Return whether the path still names the open file; it may have been deleted meanwhile."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
