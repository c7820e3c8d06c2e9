"""Where the lock is by which timed runs exclude each other, and who holds it."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from platform import node

from planish.core import PlanishError, cache_folder, private_folder
from planish.core.redaction import redact
from planish.isolation.process import WORKER

VARIABLE = "PLANISH_LOCK"
_MEND = f"Name a file that you may use: {VARIABLE}=FILE."
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
    """Give the lock file: the one that PLANISH_LOCK names, which users may share, else one of this user's.

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
        raise PlanishError(f"there is no place for the lock of timed runs: {error}", _MEND) from error


def _checked(path: Path) -> Path:
    """Open a lock file once, so that a wrong name is an error before any worker is started.

    Raises:
        PlanishError: it cannot be opened.
    """
    try:
        os.close(opened_lock(path))
    except OSError as error:
        why = "it is a folder" if path.is_dir() else str(error)
        raise PlanishError(f"{VARIABLE}={path} cannot be used: {why}", _MEND) from error
    return path


def opened_lock(path: Path) -> int:
    """Open a lock file; one that is missing is made for this user alone.

    Returns:
        A descriptor.

    Raises:
        OSError: it is a link, no plain file, or in a folder where others could have made it.
    """
    # O_NONBLOCK: opening a FIFO that somebody put there would otherwise wait for ever.
    # O_NOFOLLOW and O_CLOEXEC: a link could name a file of somebody else, and programs that are run inherit
    # no lock.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        if path.parent.stat().st_mode & 0o022:
            raise PermissionError(f"others may write to {path.parent}: make the file beforehand") from None
        with suppress(FileExistsError):  # somebody made it meanwhile: theirs is opened
            # Exclusively: else a link that was put there just now would be followed.
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
        descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no plain file")
    return descriptor


def holder_of(path: Path) -> LockHolder | None:
    """Tell who holds a lock; None where nobody does, or the system does not tell."""
    if sys.platform != "linux":
        return None
    with suppress(OSError, ValueError):
        found = path.stat()
        # As the kernel writes it: the device in hexadecimal digits, the inode in decimal ones.
        place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            # "1: FLOCK  ADVISORY  WRITE 1234 08:02:131073 0 EOF"; who waits has an arrow behind the number.
            words = line.split()
            if words[1] == "FLOCK" and words[5] == place:
                return LockHolder(int(words[4]), _command(int(words[4])))
    return None


def _command(pid: int) -> str:
    """Give the command line of a process; of a worker, that of the process that it works for."""
    with suppress(OSError, ValueError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        if WORKER in words:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
            return _command(int(status.partition("PPid:")[2].split()[0]))
        # A command line is another program's text: control characters in it must not steer the terminal.
        text = redact(" ".join("".join(c if c.isprintable() else " " for c in " ".join(words)).split()))
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return ""
