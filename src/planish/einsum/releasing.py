"""Memory that is free, returned to the system."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache


def release_memory() -> None:
    """Return free memory to the system, where the C library can do so.

    Planning takes and frees large blocks, and what it keeps is small. Without this, each kind of call would
    leave holes of some 100 KB between what is kept.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
