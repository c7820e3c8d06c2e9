"""Handling of SIGINT, SIGTERM and SIGHUP, from the first line of a command on.

Before a run begins, and after it, nothing could be lost, so they end the process at once: an exception in the
middle of an import would show as a traceback, or as another error. During a run they stop it
(`planish.core.process`). Each import here delays the moment from which this holds.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SAID = b"planish: error: interrupted. What was measured before is stored.\n"
_SHOW_CURSOR = b"\x1b[?25h"  # a live display may have hidden it


def leave_at_once() -> None:
    """Make these signals end this process with one line, and 128 + their number; ignored ones stay so."""
    for number in _STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    os.register_at_fork(after_in_child=_forget)


def _leave(number: int, _frame: FrameType | None) -> None:
    try:
        os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + _SAID)
    finally:
        os._exit(128 + number)


def _forget() -> None:
    """Restore the system's handlers in forked children: they neither write to the user nor stop a run."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
