"""Launcher of measured programs: a thread that is one sandbox layer deeper than its process.

Landlock domains and filters of system calls belong to threads, and a program has those of the thread that
starts it. So the layer is put on once, and starting a program costs what it costs without. The process itself
stays outside of the layer: the linkers that it runs may set permissions of files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from planish.isolation import cage, landlock, seccomp

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

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
    if not cage.is_confined():
        return work()
    # By process: a forked child has no threads of its parent.
    if (own := os.getpid()) not in _threads:
        from concurrent.futures import ThreadPoolExecutor

        _threads.clear()
        _threads[own] = ThreadPoolExecutor(1, initializer=_deepen)
    return _threads[own].submit(work).result()


def _deepen() -> None:
    """Enter the layer; what does not hold of it is reported by `cage.enter` already."""
    seccomp.restrict_programs()
    landlock.nest()
