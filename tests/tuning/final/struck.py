"""The level of `trading`, whose workers are killed."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from planish.core import Candidate, Outcome, StageClock, Task
from planish.testing.lattice import Set
from tuning.final.trading import Evaluator, Measuring, Plain


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
