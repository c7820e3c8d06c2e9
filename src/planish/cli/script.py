"""Entry points of the console scripts, and what a signal does until a run begins.

An interrupt during imports ends the process silently, where Python would print a traceback. One before this
module is imported, while Python starts, cannot be caught.

Before a run begins, and after it, nothing could be lost, so SIGINT, SIGTERM and SIGHUP end the process at
once: an exception in the middle of an import would show as a traceback, or as another error. During a run
they stop it (`planish.core.process`). Each import here delays the moment from which this holds.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as `typing` has it, whose import takes longer than all this
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import FrameType
else:
    try:
        import _signal as signal  # `signal` makes enumerations, which takes longer than all this
    except ImportError:  # another interpreter than CPython
        import signal

_before = signal.getsignal(signal.SIGINT)
if _before is signal.default_int_handler:  # not where nohup or a shell's & has it ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)

_COMPILERS = {"cc": False, "c++": True}
_SAID = b"planish: error: interrupted. What was measured before is stored.\n"
_SHOW_CURSOR = b"\x1b[?25h"  # a live display may have hidden it


def main() -> None:
    """Run the console script `planish`: the command that the process was started with."""
    if len(sys.argv) > 1 and sys.argv[1] in _COMPILERS:
        _run(_compile)
    _run(_command)


def cc() -> None:
    """Run the console script `planish-cc`, which compiles C."""
    from planish.cc.command import cc

    _run(cc)


def cxx() -> None:
    """Run the console script `planish-c++`, which compiles and links C++."""
    from planish.cc.command import cxx

    _run(cxx)


def _run(command: Callable[[], None]) -> None:
    """Run a command, which from here on may have something to take back before it ends."""
    try:
        signal.signal(signal.SIGINT, _before)
        command()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


def _compile() -> None:
    from planish.cc.command import leave

    leave(sys.argv[2:], plus=_COMPILERS[sys.argv[1]])


def _command() -> None:
    leave_at_once()  # first of all: a signal may come while the commands are imported
    import gc

    gc.disable()  # what is imported is not garbage
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
