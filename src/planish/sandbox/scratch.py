"""Folders for temporary files, and errors of full disks."""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Self

from planish.core import is_locked

_PREFIX = "planish-scratch-"
_LOCK = ".planish-lives"
_YOUNG_S = 60.0
_shared: list[Scratch] = []


class Scratch:
    """A new folder of temporary files.

    It is held by a lock, which the kernel releases when this process dies. The first one of a process removes
    those that no process holds any more.

    Attributes:
        path: where it is.
    """

    def __init__(self) -> None:
        _sweep_once(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder; it is called once. What is written by others meanwhile stays.

        A process that is killed here, or in the midst of `__init__`, leaves a folder without a lock: `sweep`
        takes it away.
        """
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def shared_folder() -> Path:
    """Return the folder of the files that this process shares with its workers; it ends with the process."""
    # Another process, as a cleaner of /tmp, may have removed it.
    if not (_shared and _shared[-1].path.exists()):
        _shared.append(Scratch())
        atexit.register(_shared[-1].remove)
    return _shared[-1].path


def remove_shared_folder() -> None:
    """Remove what this process shares with its workers, before it dies of a signal: then no exits are run."""
    while _shared:
        scratch = _shared.pop()
        atexit.unregister(scratch.remove)
        scratch.remove()


def is_shared(path: Path) -> bool:
    """Return whether a file or folder is what this process shares with its workers, or in it."""
    return any(path.is_relative_to(scratch.path) for scratch in _shared)


def sweep(folder: Path, young_s: float = _YOUNG_S) -> None:
    """Remove the scratch folders of processes that are dead.

    Args:
        folder: where they are.
        young_s: seconds for which a new one is let be, since it is not locked at once.
    """
    for scratch in folder.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process removes it too
            # Another process may have made it, and not locked it yet.
            if _is_own(scratch) and _age_s(scratch) >= young_s and not is_locked(scratch / _LOCK):
                shutil.rmtree(scratch, ignore_errors=True)


def _age_s(scratch: Path) -> float:
    lock = scratch / _LOCK
    return time.time() - (lock if lock.exists() else scratch).stat().st_mtime


def _is_own(scratch: Path) -> bool:
    """Return whether a folder and its lock are this user's: what others put there may be a trap."""
    folder = scratch.lstat()
    owners, regular = {folder.st_uid}, True
    with suppress(FileNotFoundError):
        lock = (scratch / _LOCK).lstat()
        owners.add(lock.st_uid)
        regular = stat.S_ISREG(lock.st_mode)
    return regular and stat.S_ISDIR(folder.st_mode) and owners == {os.geteuid()}


_sweep_once = cache(sweep)


_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_FULL = os.strerror(errno.ENOSPC)


def is_no_room(error: OSError) -> bool:
    """Return whether nothing more can be written, whatever it is."""
    return error.errno in _NO_ROOM


def check_room(program: str, messages: str) -> None:
    """Look whether a program that failed says that the disk is full, in English.

    Raises:
        OSError: it does.
    """
    if _FULL in messages:
        raise OSError(errno.ENOSPC, _FULL, program)
