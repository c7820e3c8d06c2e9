"""How a worker lives: it dies with its parent, has only so much memory, and leaves no traces."""

import faulthandler
import fcntl
import os
import resource
import select
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from planish.isolation import seccomp
from planish.isolation.privileges import hide

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
    seccomp.restrict()
    hide()


def cap_memory(more_bytes: int) -> None:
    """Allow this process so many more bytes of data than it has now; beyond them is MemoryError.

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
        # SIGKILL in place of SIGIO: evaluated code may ignore all signals but this.
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
