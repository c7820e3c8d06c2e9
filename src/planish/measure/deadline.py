"""The deadline of a block: known to all that is called in it, without being passed as an argument."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_END: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def ends_by(end: float) -> Generator[None]:
    """Let the block be over by a time of the monotonic clock, or by the outer block's, if that is earlier."""
    # Never later than the outer block's: who was given a time must hold it, whatever is called in it.
    token = _END.set(min(end, _END.get()))
    try:
        yield
    finally:
        _END.reset(token)


def deadline() -> float:
    """Give when the work is to be over, by the monotonic clock; infinite where nobody said."""
    return _END.get()


def seconds_left(most: float = math.inf) -> float:
    """Give the seconds until then, so many at most, and 0 at least."""
    return max(0.0, min(most, deadline() - time.monotonic()))
