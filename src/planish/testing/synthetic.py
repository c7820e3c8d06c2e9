"""Synthetic inputs of tests: a space with a known optimum, and evaluators that follow a script.

The space has failures, and a ridge that a short-sighted search cannot cross. By a script, a candidate
measures, fails, crashes, hangs or allocates memory.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    Failed,
    FeatureSchema,
    Lost,
    Measured,
    Objective,
    Outcome,
    ScheduleError,
    SearchContext,
    Space,
    Stage,
    StageClock,
    Step,
    content_hash,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

RIDGE_HEIGHT = 1.08
BOWL_SLOPE = 0.1


@dataclass(frozen=True)
class Set(Step):
    """Turn a knob from 0 to another value; a candidate has one such step for each knob that is not 0."""

    knob: int
    value: int


class Lattice(Space):
    """Knobs with whole values; it offers all that a searcher can need, and measures its candidates.

    The time falls along knob 0 to its last value, except on a ridge halfway, as wide as `ridge`; it
    is least in the middle of each other knob. A candidate with the last knob at its last value fails.
    From the start, greedy search with look-ahead L finds the optimum if `ridge < L`, and else stops
    before the ridge.

    Args:
        sizes: how many values each knob has; the first more than 2 * ridge, the others at least 3,
            and two knobs at least.
        ridge: how many values of knob 0 in a row are worse than the one before.
        ruggedness: each time is made longer by a factor of up to 1 + this, at random by candidate;
            above 0, nothing is promised of greedy search.
    """

    objective = Objective("time_s", "s")
    known_steps = {"Set": Set}  # noqa: RUF012

    def __init__(self, sizes: Sequence[int] = (6, 4, 4), ridge: int = 1, ruggedness: float = 0.0) -> None:
        self.sizes = tuple(sizes)
        self._ridge = range(self.sizes[0] // 2, self.sizes[0] // 2 + ridge)
        self._ruggedness = ruggedness

    def start(self) -> Candidate:
        """All knobs at 0."""
        return Candidate()

    def at(self, position: Sequence[int]) -> Candidate:
        """Return the candidate with these values."""
        return Candidate(tuple(Set(knob, value) for knob, value in enumerate(position) if value))

    def position(self, candidate: Candidate) -> tuple[int, ...]:
        """Return a candidate's value of each knob.

        Raises:
            ValueError: the candidate is none of this space.
        """
        position, last = [0] * len(self.sizes), -1
        for step in candidate.steps:
            if not (
                isinstance(step, Set)
                and last < step.knob < len(position)
                and 0 < step.value < self.sizes[step.knob]
            ):
                raise ValueError(f"{candidate} is not on the lattice")
            position[step.knob], last = step.value, step.knob
        return tuple(position)

    def sample(self, rng: Generator) -> Candidate:
        """Draw each candidate alike."""
        return self.at([int(rng.integers(size)) for size in self.sizes])

    def steps(self, candidate: Candidate) -> list[Set]:
        """Turn one knob by one, up or down."""
        turns = [(k, v + by) for k, v in enumerate(self.position(candidate)) for by in (1, -1)]
        return [Set(knob, value) for knob, value in turns if 0 <= value < self.sizes[knob]]

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        """Turn a knob.

        Raises:
            ValueError: the step is none of this space.
        """
        if not isinstance(step, Set):
            raise ValueError(f"{step} turns no knob")
        position = list(self.position(candidate))
        position[step.knob] = step.value
        return self.at(position)

    def state_key(self, candidate: Candidate) -> str:
        """Write the values."""
        return ",".join(map(str, self.position(candidate)))

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Set one knob to another value."""
        position = list(self.position(candidate))
        knob = int(rng.integers(len(position)))
        position[knob] = (position[knob] + int(rng.integers(1, self.sizes[knob]))) % self.sizes[knob]
        return self.at(position)

    @property
    def schema(self) -> FeatureSchema:
        """The value of each knob."""
        return FeatureSchema("lattice", 1, tuple([f"knob {knob}" for knob in range(len(self.sizes))]))

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe candidates by their values."""
        import numpy as np

        return np.array([*map(self.position, candidates)], np.float32).reshape(-1, len(self.sizes))

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Swap the values after one point."""
        here, there = self.position(a), self.position(b)
        point = int(rng.integers(len(here) + 1))
        return self.at(here[:point] + there[point:]), self.at(there[:point] + here[point:])

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> list[Candidate]:  # noqa: ARG002
        """Return the first value of each knob but 0, then the start."""
        return [self.at([1] * len(self.sizes)), self.start()]

    def focused(self, candidates: Sequence[Candidate]) -> Lattice:
        """Return this lattice: it draws all values alike."""
        del candidates
        return self

    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate | None:
        """Turn the other knobs back to 0."""
        return Candidate(tuple(candidate.steps[index] for index in indices))

    def size(self) -> int:
        """Count the candidates."""
        return math.prod(self.sizes)

    def candidates(self) -> Iterator[Candidate]:
        """List all candidates, the last knob turning fastest."""
        return map(self.at, product(*map(range, self.sizes)))

    def outcome(self, candidate: Candidate) -> Outcome:
        """Return the outcome of a candidate."""
        position = self.position(candidate)
        if position[-1] == self.sizes[-1] - 1:
            return Failed("build", "last value of the last knob", str(candidate))
        # A hash is as good as chance, and the same in each process.
        noise = int(content_hash(self.state_key(candidate)), 16) / 16**32
        return Measured({self.objective.name: self._time(position) * (1 + self._ruggedness * noise)})

    def _time(self, position: tuple[int, ...]) -> float:
        first, *others = position
        height = RIDGE_HEIGHT if first in self._ridge else 1.0
        level = self._ridge.start - 1 if first in self._ridge else first
        away = sum(abs(v - size // 2) for v, size in zip(others, self.sizes[1:], strict=True))
        return 1e-3 * height * (1 + BOWL_SLOPE * away) * 0.95**level

    def table(self) -> dict[str, Outcome]:
        """Return every candidate's outcome by its hash."""
        return {candidate.hash: self.outcome(candidate) for candidate in self.candidates()}

    def optimum(self) -> float:
        """Return the least time of all, in seconds."""
        outcomes = map(self.outcome, self.candidates())
        return min(o.values[self.objective.name] for o in outcomes if isinstance(o, Measured))


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

    def __call__(self) -> LoggingEvaluator:
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

    def __call__(self) -> KilledEvaluator:
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
