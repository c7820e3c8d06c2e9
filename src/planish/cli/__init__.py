"""The command line: `planish COMMAND`; one file for each command, and nothing heavy until one runs.

Before a run begins, and after it, nothing could be lost, so SIGINT, SIGTERM and SIGHUP end the process at
once: an exception in the middle of an import would show as a traceback, or as another error. During a run
they stop it (`planish.core.process`). Each import here delays the moment from which this holds.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than all this
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from planish.cli.commands import app

__all__ = ["app", "leave_at_once", "main"]

_COMPILERS = {"cc": False, "c++": True}
_SAID = b"planish: error: interrupted. What was measured before is stored.\n"
_SHOW_CURSOR = b"\x1b[?25h"  # a live display may have hidden it


def main() -> None:
    """Run the command that the process was started with."""
    if len(sys.argv) > 1 and sys.argv[1] in _COMPILERS:
        from planish.cc.command import leave

        leave(sys.argv[2:], plus=_COMPILERS[sys.argv[1]])
    _main()


def _main() -> None:
    leave_at_once()  # first of all: a signal may come while the commands are imported
    import gc

    gc.disable()  # what is imported is no garbage
    from planish.cli.commands import app

    gc.freeze()
    gc.enable()
    try:
        app()
    finally:
        gc.freeze()  # the interpreter's end looks for garbage, which takes longer than some commands


def leave_at_once() -> None:
    """Make SIGINT, SIGTERM and SIGHUP end this process by a line and 128 + their number, unless ignored."""
    import signal

    def forget() -> None:
        # In forked children, which neither write to the user nor stop a run.
        for number in (signal.SIGTERM, signal.SIGHUP):
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    os.register_at_fork(after_in_child=forget)


def _leave(number: int, _frame: FrameType | None) -> None:
    try:
        os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + _SAID)
    finally:
        os._exit(128 + number)


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'planish.cli' has no attribute '{name}'")
    from planish.cli.commands import app

    return app
