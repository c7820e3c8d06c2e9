"""Evaluator that does what its candidates say: measure, fail, crash, hang, eat memory, litter."""

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
class Act(Step):
    """One thing to do.

    Args:
        name: one of `ACTS`, or of the answers that `Actor` knows.
        value: what the act needs; it is added to the candidate's cost.
        stage: where it is done.
    """

    name: str = "measure"
    value: float = 1.0
    stage: Stage = "build"


def act(name: str = "measure", value: float = 1.0, stage: Stage = "build") -> Candidate:
    """Make a candidate that does one thing."""
    return Candidate((Act(name, value, stage),))


class Actor:
    """Does the acts of a candidate in turn; measures their sum as "cost".

    The acts "fail", "lose" and "nothing" answer with a `Failed`, with a `Lost` and with None; "nan" and the
    others of `_ANSWERS` with what is no sensible value.
    """

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Do it."""
        cost = 0.0
        for step in candidate.steps:
            assert isinstance(step, Act)
            with clock(step.stage):
                if step.name in _ANSWERS:
                    return _ANSWERS[step.name]
                ACTS[step.name](step.value)
            cost += step.value
        return Measured({"cost": cost}, {"cost": (cost, cost)})


_ANSWERS: dict[str, Outcome] = {
    "fail": Failed("verify", "wrong answer", "off by one"),
    "lose": Lost("run", "killed", "its program was killed"),
    "nothing": None,  # pyright: ignore[reportAssignmentType]  # what a plug-in's mistake may give
    "true": True,  # pyright: ignore[reportAssignmentType]
    "nan": Measured({"cost": float("nan")}),
    "infinite": Measured({"cost": float("inf")}),
    "huge": Measured({"cost": 10**400}),
    "yes": Measured({"cost": True}),
    "text": Measured({"cost": "1"}),  # pyright: ignore[reportArgumentType]
    "none": Measured({"cost": None}),  # pyright: ignore[reportArgumentType]
    "samples": Measured({"cost": 1.0}, {"cost": (1.0, float("nan"))}),
    "stage": Failed("nowhere", "lost its way"),  # pyright: ignore[reportArgumentType]
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
    os.kill(os.getpid(), signal.SIGSEGV)


def _signal(number: float) -> None:
    """Do to oneself what others do to a worker: kill it, end it, stop it."""
    os.kill(os.getpid(), int(number))


def _leave(value: float) -> None:
    os.write(2, b"leaving\n")
    os._exit(int(value))


def _spin(_: float) -> None:
    while True:
        pass


def _spin_in_c(_: float) -> None:
    ctypes.PyDLL(None).pause()  # PyDLL: it keeps the GIL


def _eat(megabytes: float) -> None:
    data = bytearray(int(megabytes) << 20)
    data[::4096] = b"x" * len(data[::4096])


def _spew(megabytes: float) -> None:
    line = b"spew" * 255 + b"\n"
    for _ in range(int(megabytes) << 10):
        os.write(1, line)
        sys.stderr.write(line.decode())


def _litter(_: float) -> None:
    """Leave a temporary folder with a file."""
    (Path(tempfile.mkdtemp()) / "file").write_text("litter")


def _fork(_: float) -> None:
    """Leave a child that sleeps; it inherits every pipe."""
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)


def _split(_: float) -> None:
    """Fork, and let the child go on as if it were the worker."""
    os.fork()


def _mute(_: float) -> None:
    """Close all that can be closed, the worker's pipes too."""
    os.closerange(0, 256)
    time.sleep(600)


ACTS: dict[str, Callable[[float], None]] = {
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
    "eat": _eat,
    "spew": _spew,
    "litter": _litter,
    "fork": _fork,
    "split": _split,
    "mute": _mute,
}


@dataclass(frozen=True)
class Diary:
    """A spec of evaluators that append to a file which process evaluates what: its id and a candidate a line.

    Args:
        path: the file.
    """

    path: Path

    def __call__(self) -> "Diarist":
        return Diarist(self.path)


@dataclass(frozen=True)
class Mortal:
    """A spec of actors that a signal ends in the first so many evaluations, in whichever process.

    Args:
        path: the file in which they count them.
        times: how many.
        number: the signal's.
    """

    path: Path
    times: int
    number: int = signal.SIGKILL

    def __call__(self) -> "Mortal":
        return self

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Do it, unless the time has come."""
        with clock("build"):
            self.live()
        return Actor().evaluate(candidate, clock)

    def live(self) -> None:
        """Grow older, or be struck."""
        with self.path.open("ab") as file:
            file.write(b".")
            file.flush()
            age = file.tell()
        if age <= self.times:
            _signal(self.number)


class Diarist(Actor):
    """An actor that writes into its diary first."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Write, then do it."""
        with self._path.open("a") as file:
            file.write(f"{os.getpid()} {candidate}\n")
        return super().evaluate(candidate, clock)
