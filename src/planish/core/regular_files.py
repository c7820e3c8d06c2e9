"""Regular files: reading what the user named without waiting for a FIFO or a device."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def check_regular(path: Path) -> None:
    """Check that a path leads to a regular file, before something else opens it.

    To open a FIFO waits until another process writes to it, and a device may have no end.

    Raises:
        OSError: it is of another kind, which `strerror` names, or is missing.
    """
    _check(path, path.stat())


def read_regular(path: Path) -> bytes:
    """Read a regular file.

    Raises:
        OSError: as `check_regular`, or it cannot be read.
    """
    check_regular(path)
    # It may have been replaced since: such an open does not wait either.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        _check(path, os.fstat(file.fileno()))
        return file.read()


def copy_regular(path: Path, to: Path) -> None:
    """Copy a regular file that a process wrote which is not trusted: a link is refused.

    Raises:
        OSError: as `read_regular`, or it cannot be written.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags), "rb") as file, to.open("wb") as copied:
        _check(path, os.fstat(file.fileno()))
        shutil.copyfileobj(file, copied)


def _check(path: Path, found: os.stat_result) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        raise OSError(
            errno.EINVAL, f"it is {_KINDS.get(kind, 'of another kind')}, not a regular file", str(path)
        )
