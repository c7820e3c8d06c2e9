"""How processes end: by themselves, or by somebody else."""

import signal
from dataclasses import dataclass

_OWN = frozenset(
    getattr(signal, f"SIG{name}")
    for name in [
        "SEGV",
        "BUS",
        "ILL",
        "FPE",
        "ABRT",
        "SYS",
        "TRAP",
        "XCPU",
        "XFSZ",
        "PIPE",
        "ALRM",
        "VTALRM",
        "PROF",
    ]
)
"""What a process brings upon itself; other signals are sent by somebody."""
_TIMERS = frozenset((signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU))


@dataclass(frozen=True)
class End:
    """How a worker ended.

    Args:
        cause: one line.
        detail: the cause, and the last lines that it printed.
        from_outside: whether a signal ended it that evaluated code does not cause.
        hung: whether a timer ended it.
        exited: whether it ended with an exit code.
    """

    cause: str
    detail: str
    from_outside: bool
    hung: bool = False
    exited: bool = False


def is_from_outside(code: int) -> bool:
    """Whether a process ended by somebody else's signal.

    Args:
        code: as of `subprocess`: negative for a signal.
    """
    return code < 0 and -code not in _OWN


def is_timeout(code: int) -> bool:
    """Whether a process ended by one of the timers that it had set, as `is_from_outside` takes the code."""
    return -code in _TIMERS


def ending_of(code: int) -> str:
    """Say how a process with such a code ended."""
    if code >= 0:
        return f"exited with code {code}"
    hint = " (the system may be out of memory)" if code == -signal.SIGKILL else ""
    return f"killed by {_signal_name(-code)}{hint}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
