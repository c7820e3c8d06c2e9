"""A level with two objectives and a known front, whose workers may be killed.

Knob 0 takes time away and, where knob 1 is set too, adds to the error; knob 1 takes error away; knob 2 takes
less time away than can be seen, and knob 3 is idle. So all of the front has knob 1 at its last value. The
search measures without noise.
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from planish.core import (
    NO_ANALYSIS,
    Candidate,
    CrossCheck,
    ExecutorFactory,
    Failed,
    FinalChecks,
    Level,
    Measured,
    Objective,
    Outcome,
    PlanishError,
    Program,
    SecondaryBaseline,
    Space,
    StageClock,
    Step,
    Target,
    Task,
)
from planish.testing.synthetic import Lattice, Set

SIZES = (4, 4, 3, 3)
TIME, ERROR = Objective("time_s", "s"), Objective("error", exact=True)
NOISE = 2e-3


@dataclass(frozen=True)
class Text:
    """A program; there is nothing to it."""

    text: str = "trade"
    level: str = "trade"


class Trade(Lattice):
    """The space."""

    def __init__(self) -> None:
        super().__init__(SIZES)

    def outcome(self, candidate: Candidate) -> Outcome:
        """Tell what becomes of a candidate, without noise."""
        first, second, third, _ = self.position(candidate)
        error = 0.5 - 0.1 * second + 0.05 * min(first, second)
        return Measured({"time_s": 1e-3 * (1 - 0.1 * first) * (1 - 0.001 * third), "error": error})


@dataclass(frozen=True)
class Measuring:
    """Makes evaluators.

    Args:
        slower: by what times are multiplied.
        noise: by which share they differ at most.
    """

    slower: float = 1.0
    noise: float = NOISE

    def __call__(self) -> Evaluator:
        return Evaluator(self)


class Evaluator:
    """Measures, with some noise."""

    def __init__(self, spec: Measuring) -> None:
        self._spec, self._calls = spec, 0

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        self._calls += 1
        with clock("run"):
            outcome = Trade().outcome(candidate)
        assert isinstance(outcome, Measured)
        factor = self._spec.slower * (1 + self._spec.noise * math.sin(self._calls))
        return Measured({**outcome.values, "time_s": outcome.values["time_s"] * factor})


@dataclass
class Plain(Level[Any]):
    """The level, without all that a level may add."""

    name = "trade"
    version = "1"
    objectives: Mapping[str, Objective] = field(default_factory=lambda: {"time_s": TIME, "error": ERROR})
    spaces = ("knobs",)
    searchers = ("random",)

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        return {"Set": Set}

    def accepts(self, source: str) -> bool:
        return source == "trade"

    def load(self, source: str, options: Mapping[str, str]) -> Text:
        del source, options
        return Text()

    def read(self, text: str, target: Target) -> Text:
        del target
        return self.load(text, {})

    def target(self, program: Program, cores: int) -> Target:
        del program
        return Target("abacus", cores=cores)

    def runs_user_code(self, task: Task) -> bool:
        del task
        return False

    def space(self, task: Task, name: str) -> Space:
        del task, name
        return Trade()

    def evaluator(self, task: Task, *, final: bool = False) -> Measuring:
        del task
        return Measuring(noise=NOISE if final else 0.0)

    def describe(
        self, task: Task, candidate: Candidate, analysis: Mapping[str, Any] = NO_ANALYSIS
    ) -> Mapping[str, str]:
        del analysis
        del task
        return {"place": str(candidate)}

    def export(self, task: Task, candidate: Candidate, path: Path) -> Sequence[Path]:
        del task, candidate
        return [path]


@dataclass
class Full(Plain):
    """The level with all that a level may add.

    Args:
        trouble: raised by the method of this name.
        error: what is raised.
    """

    trouble: str = ""
    error: BaseException = field(default_factory=lambda: PlanishError("there is trouble"))

    def final_checks(self, task: Task) -> FinalChecks:
        """Do all that there is."""
        return FinalChecks(
            partial(self.secondary_baseline, task),
            partial(self.scores, task),
            partial(self.cross_check, task),
        )

    def scores(
        self, task: Task, candidates: Sequence[Candidate], start: ExecutorFactory
    ) -> Sequence[Outcome]:
        """Add 0.01 to the error; with knob 0 at 2 it fails."""
        del task, start
        self._check("scores")
        return [self._score(candidate) for candidate in candidates]

    def _score(self, candidate: Candidate) -> Outcome:
        outcome = Trade().outcome(candidate)
        assert isinstance(outcome, Measured)
        if first(candidate) == 2:
            return Failed("verify", "not finite", "none is")
        return Measured({"error_final": outcome.values["error"] + 0.01})

    def cross_check(
        self, task: Task, candidates: Sequence[Candidate], start: ExecutorFactory
    ) -> Sequence[CrossCheck]:
        """Differ where knob 0 is at its last value."""
        del task, start
        self._check("cross_check")
        wrong = CrossCheck(agrees=False, why="far apart")
        return [wrong if first(c) == SIZES[0] - 1 else CrossCheck(True, 1e-6) for c in candidates]

    def secondary_baseline(self, task: Task) -> SecondaryBaseline:
        """Return one of twice the time."""
        del task
        self._check("secondary_baseline")
        return SecondaryBaseline("slow", Candidate(), Measuring(slower=2.0))

    def _check(self, method: str) -> None:
        if method == self.trouble:
            raise self.error


def first(candidate: Candidate) -> int:
    """Return the value of knob 0."""
    return Trade().position(candidate)[0]


@dataclass(frozen=True)
class Struck(Measuring):
    """Makes evaluators that are killed so many times for each candidate that turns a knob to a value."""

    folder: Path = Path()
    knob: int = 0
    value: int | None = None
    times: int = 0

    def __call__(self) -> Evaluator:
        return Victim(self)


class Victim(Evaluator):
    def __init__(self, spec: Struck) -> None:
        super().__init__(spec)
        self._strike = spec

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        strike = self._strike
        if strike.value is None or Set(strike.knob, strike.value) in candidate.steps:
            with (strike.folder / candidate.hash).open("a+b") as file:
                file.write(b".")
                file.flush()
                if file.tell() <= strike.times:
                    os.kill(os.getpid(), signal.SIGKILL)
        return super().evaluate(candidate, clock)


@dataclass
class Mortal(Plain):
    """The level with such evaluators."""

    spec: Struck | None = None

    def evaluator(self, task: Task, *, final: bool = False) -> Measuring:
        return self.spec or super().evaluator(task, final=final)
