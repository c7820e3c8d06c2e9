"""Signals that ask to stop: what was begun is taken back, and the process dies of the signal."""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import NoReturn

    Handler = Callable[[int, FrameType | None], object] | int | None

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_last = signal.SIGINT


class Stoppable:
    """Has the signals that ask to stop raise KeyboardInterrupt within the block; ignored ones stay so."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Handler] = {}
        self._hook = sys.unraisablehook

    def __enter__(self) -> None:
        sys.unraisablehook = self._once_more
        for number in _STOPPING:
            handler = self._before[number] = signal.getsignal(number)
            if handler is not signal.SIG_IGN:
                signal.signal(number, _stop)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.unraisablehook = self._hook
        if not isinstance(error, KeyboardInterrupt):  # another signal would only disturb the end
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def _once_more(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Send a signal again that came where Python can raise nothing, as in what it calls around a fork."""
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            self._hook(unraisable)
            return
        from planish.core.process import (
            send_again,
        )  # here: it takes longer to load than clang for a small file

        signal.signal(_last, _stop)
        send_again(_last)


def die_of_interrupt() -> None:
    """Die of the signal that came last: the parent process, such as make, must see it."""
    signal.signal(_last, signal.SIG_DFL)
    os.kill(os.getpid(), _last)


def interrupt(number: int) -> NoReturn:
    """Raise KeyboardInterrupt for a signal that asked to stop; later ones are ignored."""
    _stop(number, None)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    global _last
    del frame
    _last = signal.Signals(number)
    for each in _STOPPING:  # one is enough: now it is tidied up
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt(number)
