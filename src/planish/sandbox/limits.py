"""Limits of evaluations, and exit status of processes."""

import math
import signal
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Protocol, runtime_checkable

from planish.core import EvaluatorSpec


@runtime_checkable
class HasLimits(Protocol):
    """An evaluator's spec whose evaluations need other limits of time and memory than the usual ones."""

    @property
    def limits(self) -> "Limits | None":
        """Return the limits; None for the defaults."""
        ...


@dataclass(frozen=True)
class Limits:
    """The limits of one evaluation.

    A limit holds for all that a candidate spends in a stage, also when it enters it several times.

    Args:
        transform: seconds to apply the steps.
        build: seconds to make the code.
        verify: seconds to check the answer.
        run: seconds to measure; the wait for the machine is not counted.
        worker: seconds outside the stages, and to start a worker and make its evaluator.
        attempts: how often a candidate is evaluated that is lost with its worker each time.
        lifetime: evaluations after which a worker is replaced, because what it runs leaks; None: never.
        memory_bytes: data that a worker may have beyond what it has at its start (Linux:
            RLIMIT_DATA, for each process apart; shared memory is not counted).
    """

    transform: float = 10.0
    build: float = 10.0
    verify: float = 20.0
    run: float = 20.0
    worker: float = 60.0
    attempts: int = 3
    lifetime: int | None = None
    memory_bytes: int = 4 << 30

    @staticmethod
    def of(spec: EvaluatorSpec) -> "Limits":
        """Return the limits that a spec asks for (`HasLimits`); else the usual ones."""
        return (spec.limits if isinstance(spec, HasLimits) else None) or Limits()

    @staticmethod
    def widest(several: Iterable["Limits"]) -> "Limits":
        """Return limits that suffice for evaluations under any of several; the shortest lifetime counts."""
        limits = list(several)
        # The shortest: what leaks for one leaks in the worker of all.
        lives = [each.lifetime for each in limits if each.lifetime is not None]
        names = [field.name for field in fields(Limits) if field.name != "lifetime"]
        most = {name: max(getattr(each, name) for each in limits) for name in names}
        return Limits(**most, lifetime=min(lives, default=None))

    def seconds(self, phase: str) -> float:
        """Return the limit of a phase of the clock; "wait", for the machine, has none."""
        return math.inf if phase == "wait" else getattr(self, phase)


_TIMERS = frozenset((signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU))
_FAULTS = frozenset((signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT))
_OWN = _TIMERS | _FAULTS | {signal.SIGSYS, signal.SIGTRAP, signal.SIGXFSZ, signal.SIGPIPE}
"""Signals that a process brings upon itself; others come from other processes."""


@dataclass(frozen=True)
class ExitStatus:
    """Exit status of a worker.

    Args:
        cause: one line.
        detail: the cause, and the last lines that it printed.
        external: whether a signal ended it that evaluated code does not cause.
        hung: whether a timer ended it.
        exited: whether it ended with an exit code.
        unusable: whether it ended because it could evaluate nothing more.
    """

    cause: str
    detail: str
    external: bool
    hung: bool = False
    exited: bool = False
    unusable: bool = False


UNUSABLE = 75
"""Exit code of a worker whose device is lost."""


def is_external_signal(code: int) -> bool:
    """Return whether a process ended by a signal from outside.

    Args:
        code: as of `subprocess`: negative for a signal.
    """
    return code < 0 and -code not in _OWN


def is_timeout(code: int) -> bool:
    """Return whether a timer of the process itself ended it; the code as `is_external_signal` takes it."""
    return -code in _TIMERS


def describe_exit(code: int) -> str:
    """Return how a process with such a code ended."""
    if code >= 0:
        return f"exited with code {code}"
    known = -code in signal.Signals.__members__.values()
    name = signal.Signals(-code).name if known else f"signal {-code}"
    return f"killed by {name}{' (the system may be out of memory)' if code == -signal.SIGKILL else ''}"
