"""Entry points of the console scripts: an interrupt during imports ends the process silently.

Python itself would print a traceback. An interrupt before this module is imported, while Python starts,
cannot be caught.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    try:
        import _signal as signal  # `signal` makes enumerations, which takes longer than all this
    except ImportError:  # another interpreter than CPython
        import signal

_before = signal.getsignal(signal.SIGINT)
if _before is signal.default_int_handler:  # not where nohup or a shell's & has it ignored
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Run the console script `planish`."""
    from planish.cli import main

    _run(main)


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
