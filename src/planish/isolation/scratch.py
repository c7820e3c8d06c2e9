"""Folders for temporary files, also where a process is killed before it can remove its own."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import stat
import tempfile
import time
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path

from planish.core import is_locked

_PREFIX = "planish-"
_LOCK = ".planish-lives"
_YOUNG_S = 60.0
_shared: list[Scratch] = []


class Scratch:
    """A new folder of temporary files.

    It is held by a lock, which the kernel releases when this process dies. Who makes a folder first removes
    those that nobody holds any more, once in each process.

    Attributes:
        path: where it is.
    """

    def __init__(self) -> None:
        _sweep_once(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder; it is called once. What is written by others meanwhile stays."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def shared_folder() -> Path:
    """Give the folder beneath which this process shares files with its workers; it ends with the process."""
    # Somebody, or a cleaner of /tmp, may have removed it.
    if not (_shared and _shared[-1].path.exists()):
        _shared.append(Scratch())
        atexit.register(_shared[-1].remove)
    return _shared[-1].path


def share(owner: object) -> Path:
    """Make a folder beneath `shared_folder`; it ends with an object, which copies elsewhere do not."""
    path = Path(tempfile.mkdtemp(dir=shared_folder()))
    weakref.finalize(owner, shutil.rmtree, path, ignore_errors=True)
    return path


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it is whole or not there, whoever ends this process."""
    part = file.with_suffix(".part")
    part.write_bytes(content)
    part.replace(file)


def sweep(folder: Path, young_s: float = _YOUNG_S) -> None:
    """Remove the scratch folders of processes that are dead.

    Args:
        folder: where they are.
        young_s: seconds for which a new one is let be, since it is not locked at once.
    """
    for lock in folder.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):  # somebody removes it too
            if not _is_own(lock):
                continue
            # Another process may have made it, and not locked it yet.
            if time.time() - lock.stat().st_mtime >= young_s and not is_locked(lock):
                shutil.rmtree(lock.parent, ignore_errors=True)


def _is_own(lock: Path) -> bool:
    """Whether a lock and its folder are this user's: what others put there may be a trap, such as a pipe."""
    found = lock.lstat()
    owners = {found.st_uid, lock.parent.lstat().st_uid}
    return stat.S_ISREG(found.st_mode) and owners == {os.geteuid()} and not lock.parent.is_symlink()


_sweep_once = cache(sweep)
