"""Ctrl-C, and other signals that ask to stop, wait for a transaction to end."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from planish.core import STOPPING

_under_way = False


@contextmanager
def uninterrupted() -> Generator[None]:
    """Hold the first signal back until the block has ended; a second one breaks the block off.

    A block within a block is part of it.

    Database libraries do not survive an exception at just any instruction.
    """
    global _under_way
    handlers = {number: handler for number in STOPPING if callable(handler := signal.getsignal(number))}
    if _under_way or not handlers or threading.current_thread() is not threading.main_thread():
        yield  # no exception can come: Python calls handlers in the main thread only
        return
    held: list[int] = []
    is_over = False

    def hold(number: int, frame: FrameType | None) -> None:
        # What comes while the handlers are put back may leave this in the place of another: then it passes on
        # all that follows.
        if held or is_over:
            handlers[signal.Signals(number)](number, frame)
        held.append(number)

    try:
        _under_way = True
        for number in handlers:
            signal.signal(number, hold)
        yield
    finally:
        _under_way, is_over = False, True
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if held:
            # After the handlers are back: now the user's wish is done as it would have been.
            signal.raise_signal(held[0])
