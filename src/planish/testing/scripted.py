"""Evaluator of scripts for tests: a candidate measures, fails, crashes, hangs or allocates memory."""

import ctypes
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from planish.core import Candidate, Failed, Lost, Measured, Outcome, ScheduleError, Stage, StageClock, Step


@dataclass(frozen=True)
class Action(Step):
    """One action of a script.

    Args:
        name: a key of `ACTIONS` or of `_OUTCOMES`.
        value: the action's argument, which is also added to the candidate's cost.
        stage: the stage in which it is performed.
    """

    name: str = "measure"
    value: float = 1.0
    stage: Stage = "build"


def action(name: str = "measure", value: float = 1.0, stage: Stage = "build") -> Candidate:
    """Make a candidate of one action."""
    return Candidate((Action(name, value, stage),))


class ScriptedEvaluator:
    """Evaluator that performs the actions of a candidate in order; "cost" is the sum of their values.

    The actions "fail", "lose" and "nothing" return a `Failed`, a `Lost` and None; the other keys of
    `_OUTCOMES` return invalid outcomes.
    """

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Perform the actions."""
        cost = 0.0
        for step in candidate.steps:
            assert isinstance(step, Action)
            with clock(step.stage):
                if step.name in _OUTCOMES:
                    return _OUTCOMES[step.name]
                ACTIONS[step.name](step.value)
            cost += step.value
        return Measured({"cost": cost}, {"cost": (cost, cost)})


_OUTCOMES: dict[str, Outcome] = {
    "fail": Failed("verify", "wrong answer", "off by one"),
    "lose": Lost("run", "killed", "its program was killed"),
    "nothing": None,  # pyright: ignore[reportAssignmentType]  # what a faulty plug-in may return
    "true": True,  # pyright: ignore[reportAssignmentType]
    "nan": Measured({"cost": float("nan")}),
    "infinite": Measured({"cost": float("inf")}),
    "huge": Measured({"cost": 10**400}),
    "yes": Measured({"cost": True}),
    "text": Measured({"cost": "1"}),  # pyright: ignore[reportArgumentType]
    "none": Measured({"cost": None}),  # pyright: ignore[reportArgumentType]
    "samples": Measured({"cost": 1.0}, {"cost": (1.0, float("nan"))}),
    "stage": Failed("nowhere", "no such stage"),  # pyright: ignore[reportArgumentType]
}


def _measure(_: float) -> None:
    """Do nothing."""


def _raise(_: float) -> None:
    raise ZeroDivisionError("as asked")


def _illegal(_: float) -> None:
    raise ScheduleError("axis 'm' is split already", "Split 'm_in'.")


def _quit(value: float) -> None:
    sys.exit(int(value))


def _crash(_: float) -> None:
    signal.raise_signal(signal.SIGSEGV)  # in this thread: another one may take that of os.kill later


def _signal(number: float) -> None:
    """Send a signal to this process, as a user or the kernel may: SIGKILL, SIGTERM, SIGSTOP."""
    os.kill(os.getpid(), int(number))


def _leave(value: float) -> None:
    os.write(2, b"leaving\n")
    os._exit(int(value))


def _spin(_: float) -> None:
    while True:
        pass


def _spin_in_c(_: float) -> None:
    ctypes.PyDLL(None).pause()  # PyDLL: it keeps the GIL


def _allocate(megabytes: float) -> None:
    data = bytearray(int(megabytes) << 20)
    data[::4096] = b"x" * len(data[::4096])


def _print(megabytes: float) -> None:
    line = b"text" * 255 + b"\n"
    for _ in range(int(megabytes) << 10):
        os.write(1, line)
        sys.stderr.write(line.decode())


def _leave_folder(_: float) -> None:
    """Create a temporary folder with a file, and do not remove it."""
    (Path(tempfile.mkdtemp()) / "file").write_text("left")


def _fork(_: float) -> None:
    """Fork a child that sleeps; it inherits every pipe."""
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)


def _split(_: float) -> None:
    """Fork, and let the child continue as if it were the worker."""
    os.fork()


def _close_descriptors(_: float) -> None:
    """Close all descriptors, including the worker's pipes."""
    os.closerange(0, 256)
    time.sleep(600)


ACTIONS: dict[str, Callable[[float], None]] = {
    "measure": _measure,
    "sleep": time.sleep,
    "raise": _raise,
    "illegal": _illegal,
    "quit": _quit,
    "crash": _crash,
    "signal": _signal,
    "leave": _leave,
    "spin": _spin,
    "spin in C": _spin_in_c,
    "allocate": _allocate,
    "print": _print,
    "leave folder": _leave_folder,
    "fork": _fork,
    "split": _split,
    "close descriptors": _close_descriptors,
}


@dataclass(frozen=True)
class LoggingSpec:
    """Spec of evaluators that append a line to a file for each evaluation: the process id and the candidate.

    Args:
        path: the file.
    """

    path: Path

    def __call__(self) -> "LoggingEvaluator":
        return LoggingEvaluator(self.path)


@dataclass(frozen=True)
class KilledEvaluator:
    """Spec of scripted evaluators of which a signal ends the first evaluations, in any process.

    Args:
        path: the file that counts the evaluations.
        times: the number of evaluations that are ended.
        number: the signal.
    """

    path: Path
    times: int
    number: int = signal.SIGKILL

    def __call__(self) -> "KilledEvaluator":
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Perform the actions, unless this evaluation is to be ended."""
        with clock("build"):
            self.count()
        return ScriptedEvaluator().evaluate(candidate, clock)

    def count(self) -> None:
        """Count an evaluation; send the signal if it is one of the first `times`."""
        with self.path.open("ab") as file:
            file.write(b".")
            file.flush()
            evaluations = file.tell()
        if evaluations <= self.times:
            _signal(self.number)


class LoggingEvaluator(ScriptedEvaluator):
    """Scripted evaluator that writes a line into a log before each evaluation."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Write the line, then perform the actions."""
        with self._path.open("a") as file:
            file.write(f"{os.getpid()} {candidate}\n")
        return super().evaluate(candidate, clock)
