"""Programs that may do anything are run in a cage: what a worker puts on itself holds for all that it starts.

So it costs nothing when a program is started, which is timed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from planish.core import EvaluatorFactory, PlanishError
from planish.measure import landlock, seccomp
from planish.measure.machine_lock import opened_lock
from planish.measure.namespaces import leave_network

SYSTEM = tuple(
    map(
        Path,
        [
            "/usr",
            "/lib",
            "/lib32",
            "/lib64",
            "/libx32",
            "/bin",
            "/sbin",
            "/opt",
            "/etc",
            "/proc",
            "/sys",
            "/dev",
            "/nix",
            "/gnu",
            "/var/lib",
        ],
    )
)
"""Where a system keeps what programs need; homes, other disks and /tmp are not among it."""
_DEVICES = tuple(map(Path, ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")))
_FILE_BYTES, _FILES, _PROCESSES = 1 << 30, 1024, 2048
_SUBREAPER = 36
_END_S = 5.0
_on: list[Cage] = []


@dataclass(frozen=True)
class Cage:
    """What a worker's programs may do: compute, read what the system has, and write to the worker's scratch.

    Args:
        reads: further files and folders that they may read.
    """

    reads: tuple[str, ...] = ()

    @staticmethod
    def of(factory: EvaluatorFactory) -> Cage | None:
        """Give the cage that a factory asks for, by an attribute `cage`; None where it runs no programs."""
        return getattr(factory, "cage", None)

    @staticmethod
    def widest(several: Iterable[Cage | None]) -> Cage | None:
        """Give one cage for evaluators of one worker; None where none of them asks for any."""
        asked = [each for each in several if each is not None]
        return Cage(tuple(dict.fromkeys(path for each in asked for path in each.reads))) if asked else None


def enter(cage: Cage, lock: Path | None = None) -> tuple[str, ...]:
    """Confine this process, and all that it will start, for good.

    Args:
        cage: what programs may do.
        lock: the file by which timed runs exclude each other, which the worker goes on to use.

    Returns:
        What does not hold, and why; empty where all does.

    Raises:
        PlanishError: it is confined already, in another way.
    """
    if _on:
        if _on != [cage]:
            raise PlanishError("a worker that is confined cannot be given other files", "Use another worker.")
        return ()
    _limit()
    _own_strays()
    scratch = [(Path(tempfile.gettempdir()), landlock.ALL), *((each, landlock.ALL) for each in _DEVICES)]
    if lock is not None:
        os.close(opened_lock(lock))  # it cannot be made later
    locked = [] if lock is None else [lock.parent]
    looked_at = [(path, landlock.LOOK) for path in (*SYSTEM, *_of_python(), *locked, *map(Path, cage.reads))]
    calls = seccomp.restrict(os.getpid())
    network = leave_network() if calls else ""  # before Landlock, which hides what it takes
    files = landlock.restrict([*scratch, *looked_at])
    _on.append(cage)
    return tuple(
        f"programs are not confined by {name}: {why}"
        for name, why in (("Landlock", files), ("seccomp", calls), ("a network of their own", network))
        if why
    )


def end_strays() -> None:
    """End what a program started and left behind; nothing in a process that is not confined.

    Raises:
        PlanishError: there are always more of them.
    """
    deadline = time.monotonic() + _END_S
    while _on and (found := list(_children())):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        if time.monotonic() > deadline:
            raise PlanishError("a program starts processes faster than they can be ended")


def told() -> str:
    """Say by what programs are confined here, and what is left open."""
    known = landlock.abi()
    holds = [f"Landlock (ABI {known})"] if known else []
    holds += ["seccomp"] if seccomp.is_there() else []
    holds += ["limits of memory, of files' sizes and of open files"]
    lacks = [] if known else ["files (no Landlock)"]
    lacks += [] if known >= landlock.SCOPED else ["signals to your other processes"]
    lacks += [] if seccomp.is_there() else ["sessions of their own (no seccomp)"]
    lacks += ["the number of processes (root has no limit)"] if os.geteuid() == 0 else []
    return ", ".join(holds) + (f"; not held: {', '.join(lacks)}" if lacks else "")


def _limit() -> None:
    _lower(resource.RLIMIT_FSIZE, _FILE_BYTES)
    _lower(resource.RLIMIT_NOFILE, _FILES)
    with suppress(OSError):  # it counts all processes of the user
        _lower(resource.RLIMIT_NPROC, sum(map(_is_own, Path("/proc").glob("[0-9]*"))) + _PROCESSES)


def _lower(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    most = most if hard < 0 else min(most, hard)
    resource.setrlimit(which, (most, most))


def _is_own(process: Path) -> bool:
    with suppress(OSError):
        return process.stat().st_uid == os.geteuid()
    return False


def _own_strays() -> None:
    """Become the parent of whatever loses its own: so it can be found and ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _children() -> Iterator[int]:
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            yield from map(int, listed.read_text(encoding="ascii").split())


def _of_python() -> Iterator[Path]:
    """List where the interpreter, its packages and the libraries that it has loaded are."""
    yield from map(Path, {sys.prefix, sys.base_prefix, *filter(None, sys.path)})
    yield from map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")))
    with suppress(OSError):
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        names = {line.partition("/")[2] for line in lines if ".so" in line}
        yield from {Path(f"/{name}").parent for name in names if name}
