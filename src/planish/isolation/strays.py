"""Processes that a program started and left behind: who runs programs becomes their parent, and ends them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from planish.core import PlanishError

_SUBREAPER = 36
_END_S = 5.0
_owned: list[int] = []


def own_strays() -> None:
    """Become the parent of whatever loses its own: so it can be found and ended."""
    _owned.append(os.getpid())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def end_strays() -> None:
    """End what a program started and left behind; nothing in a process that owns no strays.

    Raises:
        PlanishError: there are always more of them.
    """
    deadline = time.monotonic() + _END_S
    while _owned and (found := list(_children())):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        if time.monotonic() > deadline:
            raise PlanishError("a program starts processes faster than they can be ended")


def _children() -> Iterator[int]:
    for listed in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            yield from map(int, listed.read_text(encoding="ascii").split())
