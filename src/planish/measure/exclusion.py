"""Timed runs on one machine exclude each other, whichever process or user they belong to."""

import fcntl
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import RLock, get_ident

from planish.core import PlanishError

# Fixed where it can be: TMPDIR differs by user and by job, and then nobody would exclude anybody.
MACHINE_LOCK = (Path("/tmp") if Path("/tmp").is_dir() else Path(tempfile.gettempdir())) / "planish.lock"


class _Holder:
    """This process's hold on one lock file."""

    def __init__(self) -> None:
        self.threads = RLock()
        self.depth = 0
        self.owner = 0


@cache
def _holder(_path: Path) -> _Holder:
    return _Holder()


@contextmanager
def exclusive(path: Path = MACHINE_LOCK) -> Generator[None, None, None]:
    """Wait for the machine, and keep it to oneself for the block.

    It may be nested. The kernel releases the lock when a process dies, so a crash blocks nobody.
    Costs about 10 microseconds where nobody else wants the machine.

    Args:
        path: the lock file; it is made where missing, open to all users.

    Raises:
        PlanishError: the file cannot be made or opened.
    """
    holder = _holder(path)
    with holder.threads:
        descriptor = None if holder.depth else _locked(path)
        holder.depth += 1
        holder.owner = get_ident()
        try:
            yield
        finally:
            holder.depth -= 1
            if descriptor is not None:
                # A forked child may have the file open too, so closing it is not enough.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
                os.close(descriptor)


def is_held(path: Path = MACHINE_LOCK) -> bool:
    """Tell whether this thread has the machine to itself now."""
    holder = _holder(path)
    return holder.depth > 0 and holder.owner == get_ident()


def _locked(path: Path) -> int:
    try:
        while True:
            descriptor = _opened(path)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if _is_current(descriptor, path):
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
    except OSError as error:
        raise PlanishError(
            f"the lock of timed runs cannot be used: {error}", f"Delete {path}, or make it readable for all."
        ) from error


def _is_current(descriptor: int, path: Path) -> bool:
    """Whether the path still names the open file; somebody may have deleted it while we waited."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _opened(path: Path) -> int:
    # Without O_CREAT: Linux forbids it on another user's file in a sticky folder.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    with suppress(FileNotFoundError):
        return os.open(path, flags)
    with suppress(FileExistsError):
        made = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        os.fchmod(made, 0o666)  # the umask took bits away
        return made
    return _opened(path)
