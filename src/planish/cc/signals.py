"""Ctrl-C, and what make and terminals send: what was begun is taken back, and the process dies of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_last = signal.SIGINT
Handlers = Mapping[signal.Signals, "Callable[[int, FrameType | None], object] | int | None"]


@contextmanager
def stoppable() -> Generator[None]:
    """Have the signals that ask to stop raise KeyboardInterrupt within the block; ignored ones stay so."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        yield
    except KeyboardInterrupt:
        raise  # all is tidied up, and another signal would only disturb the end
    except BaseException:
        _restore(before)
        raise
    _restore(before)


def die_of_interrupt() -> None:
    """Die of the signal that came last: who started this process sees it, as make must."""
    signal.signal(_last, signal.SIG_DFL)
    os.kill(os.getpid(), _last)


def _restore(before: Handlers) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    global _last
    del frame
    _last = signal.Signals(number)
    for each in STOPPING:  # one is enough: now it is tidied up
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(number)
