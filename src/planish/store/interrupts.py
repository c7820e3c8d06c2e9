"""Ctrl-C, and other signals that ask to stop, wait for a transaction to end."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from planish.core import STOPPING


@contextmanager
def uninterrupted() -> Generator[None]:
    """Hold the first signal back until the block has ended; a second one breaks the block off.

    Database libraries do not survive an exception at just any instruction.
    """
    handlers = {number: handler for number in STOPPING if callable(handler := signal.getsignal(number))}
    if not handlers or threading.current_thread() is not threading.main_thread():
        yield  # no exception can come: Python calls handlers in the main thread only
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            handlers[signal.Signals(number)](number, frame)
        held.append(number)

    for number in handlers:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if held:
            signal.raise_signal(held[0])
