"""Sandbox of worker processes and of measured programs.

A worker is confined for good: it dies with its parent, has a bounded amount of memory, and what it starts is
confined with it. The files and system calls that an evaluator needs are declared as a `SandboxPolicy`, which
the worker enters before the first candidate, so it costs nothing while a candidate is timed.

Landlock domains and filters of system calls belong to threads, and a program has those of the thread that
starts it. Measured programs are therefore started by a thread that is one layer deeper than its process: the
layer is added once, and starting a program costs what it costs without. The process itself stays outside of
that layer: the linkers that it runs may set permissions of files.
"""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import os
import resource
import select
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from planish.core import EvaluatorSpec, PlanishError
from planish.sandbox import linux
from planish.sandbox.linux import drop_capabilities, hide, leave_network

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_FILES, _PROCESSES = 1024, 2048
_FOR_THREADS = 256 << 20
"""Bytes of addresses that glibc reserves for the stacks and heaps of two threads."""


def settle() -> None:
    """Leave Ctrl-C to the parent, write no core files, name the line at a crash, and use no network.

    Others of the same user see nothing of its memory, descriptors and environment.

    Where the kernel has filters of system calls, this process cannot leave its session either.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(all_threads=False)
    linux.restrict_calls()
    hide()


def cap_memory(more_bytes: int) -> None:
    """Allow this process a number of bytes of data beyond those it has; more raises MemoryError.

    Linux only. Not RLIMIT_AS: run-time systems reserve far more addresses than they ever use.
    """
    if sys.platform != "linux":
        return
    # /proc/self/statm: its sixth number is data and stack, in pages.
    used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    _lower(resource.RLIMIT_DATA, used + more_bytes)


def cap_addresses() -> None:
    """Limit the addresses of this process, and of the programs that it starts: shared memory counts there.

    They are as many as the data (`cap_memory`), beside those that it has and those that the C library
    reserves for threads on all processors. Workers that compute by themselves have no such limit: compilers
    of tensors reserve far more addresses than they use.
    """
    data = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if sys.platform != "linux" or data < 0:
        return
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _lower(resource.RLIMIT_AS, used + data + _FOR_THREADS * (os.cpu_count() or 1))


def cap_the_rest(file_bytes: int) -> None:
    """Allow this process, and what it starts, no larger files, 1,024 open ones, and 2,048 processes more."""
    _lower(resource.RLIMIT_FSIZE, file_bytes)
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


def die_with_parent(lifeline: int) -> None:
    """Kill this process group at the moment when the parent is gone.

    On Linux the kernel does it, whatever this process and its children are busy with.

    Args:
        lifeline: the read end of a pipe to which only the parent holds the write end.
    """
    if sys.platform == "linux":
        # As PR_SET_PDEATHSIG, but for the group, and not bound to the thread that started us.
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        # SIGKILL and not SIGIO: evaluated code may ignore all signals but this.
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
        if select.select([lifeline], [], [], 0)[0]:  # gone before we asked
            _end_group()
    else:
        threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)
    _end_group()


def _end_group() -> None:
    os.killpg(0, signal.SIGKILL)


_SUBREAPER = 36
_END_S = 5.0
_owned: list[int] = []


def adopt_orphans() -> None:
    """Make this process the subreaper of its descendants, so that `end_orphans` finds the orphans."""
    _owned.append(os.getpid())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def end_orphans() -> None:
    """End what a program started and left behind; nothing in a process that adopts no orphans.

    Raises:
        PlanishError: there are always more of them.
    """
    deadline = time.monotonic() + _END_S
    while _owned and (found := linux.children()):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        if time.monotonic() > deadline:
            raise PlanishError("a program starts processes faster than they can be ended")


_FOLDERS = "usr lib lib32 lib64 libx32 bin sbin opt etc proc sys nix gnu var/lib dev/random dev/urandom"
SYSTEM = tuple(Path("/") / each for each in _FOLDERS.split())
"""Folders in which a system keeps what programs need; homes, disks, terminals and /tmp are not among them."""
_DEVICES = tuple(map(Path, ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")))
_OF_GPUS = (Path("/dev/shm"), Path("~/.nv").expanduser())
FILE_BYTES = 1 << 30
"""Of the largest file that is written, where nothing else is asked for."""
_on: list[SandboxPolicy] = []


@runtime_checkable
class HasSandbox(Protocol):
    """An evaluator's spec whose evaluators run what may do harm: its workers are confined."""

    @property
    def sandbox(self) -> SandboxPolicy | None:
        """Return their permissions; None where nothing has to be confined."""
        ...


@dataclass(frozen=True)
class SandboxPolicy:
    """Permissions of a worker: to compute, to read what the system has, and to write to its scratch.

    Args:
        reads: further files and folders that may be read.
        writes: further folders that may be written.
        programs: whether the worker starts programs, which then cannot end it. Else what is confined is
            code in the worker itself.
        gpu: whether a GPU is used: its devices are written to, its driver asked by Unix sockets.
        file_bytes: of the largest file that may be written.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    programs: bool = True
    gpu: bool = False
    file_bytes: int = FILE_BYTES

    @staticmethod
    def for_code(
        writes: Iterable[Path] = (), *, gpu: bool = False, file_bytes: int = FILE_BYTES
    ) -> SandboxPolicy:
        """Return the policy for code in the worker itself: it may read all files, but cannot send them."""
        return SandboxPolicy(("/",), tuple(map(str, writes)), programs=False, gpu=gpu, file_bytes=file_bytes)

    @staticmethod
    def of(spec: EvaluatorSpec) -> SandboxPolicy | None:
        """Return the sandbox that a spec asks for (`HasSandbox`); None where it asks for none."""
        return spec.sandbox if isinstance(spec, HasSandbox) else None

    @staticmethod
    def widest(several: Iterable[SandboxPolicy | None]) -> SandboxPolicy | None:
        """Return one policy for the evaluators of one worker; None where none of them asks for any."""
        asked = [each for each in several if each is not None]
        if not asked:
            return None
        return SandboxPolicy(
            tuple(dict.fromkeys(path for each in asked for path in each.reads)),
            tuple(dict.fromkeys(path for each in asked for path in each.writes)),
            any(each.programs for each in asked),
            any(each.gpu for each in asked),
            max(each.file_bytes for each in asked),
        )


def apply_sandbox(policy: SandboxPolicy, folders: Sequence[Path] = ()) -> tuple[str, ...]:
    """Confine this process, and all that it will start, for good.

    A thread that there is already is not confined: enter before libraries are loaded that start some.

    Args:
        policy: what may be done.
        folders: further ones that may be read.

    Returns:
        What does not hold, and why; empty where all does.

    Raises:
        PlanishError: it is confined already, in another way.
    """
    if _on:
        # Neither Landlock nor a filter can be taken off: a second one could only forbid more.
        if _on != [policy]:
            raise PlanishError("a worker that is confined cannot be given other files", "Use another worker.")
        return ()
    cap_the_rest(policy.file_bytes)
    if policy.programs:
        adopt_orphans()
        cap_addresses()
    calls = linux.restrict_calls(
        os.getpid() if policy.programs else None, sockets=policy.gpu, code=not policy.programs
    )
    network = leave_network() if calls else ""  # before Landlock, which hides what it takes
    files = linux.restrict_files(
        [*_written(policy), *((path, linux.LOOK) for path in _read(policy, folders))]
    )
    # After the namespace, which takes a capability to enter.
    drop_capabilities()
    hide()
    _on.append(policy)
    subject = "programs are" if policy.programs else "candidates are"
    return tuple(
        f"{subject} not confined by {name}: {why}"
        for name, why in (("Landlock", files), ("seccomp", calls), ("a network of their own", network))
        if why
    )


def is_confined() -> bool:
    """Return whether this process is sandboxed."""
    return bool(_on)


def _written(policy: SandboxPolicy) -> Iterator[tuple[Path, int]]:
    gpu = [*Path("/dev").glob("nvidia*"), *_OF_GPUS] if policy.gpu else []
    for path in (Path(tempfile.gettempdir()), *_DEVICES, *gpu, *map(Path, policy.writes)):
        yield path, linux.ALL


def _read(policy: SandboxPolicy, folders: Sequence[Path]) -> Iterator[Path]:
    yield from (*SYSTEM, *_of_python(), *map(Path, policy.reads), *folders)


def sandbox_status() -> str:
    """Describe the mechanisms that confine candidates and programs here, and what they leave open."""
    known = linux.abi()
    holds = [f"Landlock (ABI {known})"] if known else []
    holds += ["seccomp"] if linux.is_there() else []
    holds += ["no capabilities"] if sys.platform == "linux" else []
    holds += ["limits of memory, of files' sizes and of open files"]
    lacks = [] if known else ["files and /proc (no Landlock)"]
    lacks += [] if known >= linux.SCOPED else ["signals to your other processes"]
    lacks += [] if linux.is_there() else ["sessions of their own (no seccomp)"]
    lacks += ["the number of processes (root has no limit)"] if os.geteuid() == 0 else []
    return ", ".join(holds) + (f"; not held: {', '.join(lacks)}" if lacks else "")


def _of_python() -> Iterator[Path]:
    """List where the interpreter, its packages and the libraries that it has loaded are."""
    yield from map(Path, {sys.prefix, sys.base_prefix, *filter(None, sys.path)})
    yield from map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")))
    with suppress(OSError):
        # Libraries may lie anywhere, as LLVM's by PLANISH_LIBLLVM, and those beside them may be loaded later.
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        names = {line.partition("/")[2] for line in lines if ".so" in line}
        yield from {Path(f"/{name}").parent for name in names if name}


Result = TypeVar("Result")
_PASSED = (
    *("GLIBC_TUNABLES", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOGNAME", "PATH"),
    *("SHELL", "TERM", "TMPDIR", "TZ", "USER"),
)
_FAMILIES = ("LC_", "MALLOC_", "OMP_", "GOMP_", "KMP_", "OPENBLAS_", "MKL_")
_threads: dict[int, ThreadPoolExecutor] = {}


def program_environment() -> dict[str, str]:
    """Return the environment of a measured program: what locale, loader, allocator and threads read."""
    return {
        name: value for name, value in os.environ.items() if name in _PASSED or name.startswith(_FAMILIES)
    }


def launch(work: Callable[[], Result]) -> Result:
    """Run what starts programs, and waits for them, in the thread whose programs are one layer deeper.

    In a process that is not confined it is run as it is.

    Raises:
        Exception: whatever the work raises.
    """
    if not is_confined():
        return work()
    # By process: a forked child has no threads of its parent.
    if (own := os.getpid()) not in _threads:
        from concurrent.futures import ThreadPoolExecutor

        _threads.clear()
        _threads[own] = ThreadPoolExecutor(1, initializer=_deepen)
    return _threads[own].submit(work).result()


def _deepen() -> None:
    """Enter the layer; what does not hold of it is reported by `apply_sandbox` already."""
    linux.restrict_programs()
    linux.nest()
