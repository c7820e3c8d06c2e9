"""On which processors the threads of a team run."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Generator, Sequence, Set
from contextlib import contextmanager, suppress
from functools import cache


@contextmanager
def beside_caller(threads: Sequence[int]) -> Generator[None]:
    """Keep threads off the processor where the calling one runs, and let them run anywhere afterwards.

    Linux may wake a thread on the processor of the one that wakes it, though another is idle, and moves it
    away only some tenths of a second later: two threads then take as long as one. Where there are fewer
    processors than threads, or the system has no such setting, nothing is changed.

    Args:
        threads: their numbers, as the system knows them.
    """
    where = _current_processor()
    allowed: Set[int] = os.sched_getaffinity(0) if where else set()
    # With fewer processors than threads, keeping off one would put two threads on another.
    if where is None or len(allowed) <= len(threads):
        yield
        return
    _place(threads, allowed - {where()})
    try:
        yield
    finally:  # were the caller moved to where they are, they could not go where it was
        _place(threads, allowed)


def _place(threads: Sequence[int], processors: Set[int]) -> None:
    for thread in threads:
        with suppress(OSError):  # a thread that has ended, or a sandbox that refuses it
            os.sched_setaffinity(thread, processors)


@cache
def _current_processor() -> Callable[[], int] | None:
    """Give the system's function that tells the calling thread's processor, where there is one."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    found = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    if found is not None:
        found.argtypes, found.restype = [], ctypes.c_int
    return found
