"""One search of an experiment, and the file of those that were made."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from representations import Represented

from planish.core import Candidate, Trial
from planish.executors import LocalExecutor
from planish.loops.lang.program import Program
from planish.loops.level import LoopsLevel
from planish.loops.workloads import RESNET18, convolution, matmul
from planish.search import make_searcher
from planish.settings import Settings
from planish.tuning.api import task_of

LEVEL = LoopsLevel()
TIME = LEVEL.objectives["time_s"]
AT_ONCE = 8
"""Candidates that are asked for, and measured, at once."""

Curve = Sequence[tuple[float, float]]
Options = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class Line:
    """A search that was made.

    Args:
        figure: of the paper.
        program: name of what was tuned.
        variant: how.
        seed: of the search.
        curve: after each trial the seconds since the search began, and the best time in seconds so far.
    """

    figure: str
    program: str
    variant: str
    seed: int
    curve: Curve


def program_named(name: str) -> Program:
    """Give one of ResNet-18's convolutions, C1 to C12, or a product, as 64x64x64."""
    if name in RESNET18:
        return convolution(*RESNET18[name])
    m, n, k = map(int, name.split("x"))
    return matmul(m, n, k)


def space_of(name: str, representation: str, cores: int = 1) -> Represented:
    """Make the space of a program."""
    task = task_of(LEVEL, program_named(name), Settings(cores=cores))
    return Represented(task.program, task.target, representation)


class Machine:
    """Measures candidates of one program.

    Args:
        name: of the program.
        executor: that has its evaluator.
        cores: that it may use.
    """

    def __init__(self, name: str, executor: LocalExecutor, cores: int) -> None:
        self.name, self._executor, self._cores = name, executor, cores

    def search(
        self, searcher: str, options: Options, seed: int, trials: int, representation: str = "all"
    ) -> tuple[Curve, list[Trial]]:
        """Search; all that the searcher takes counts in the seconds."""
        begun, best = time.monotonic(), math.inf
        curve, found = list[tuple[float, float]](), list[Trial]()
        space = space_of(self.name, representation, self._cores)
        made = make_searcher(searcher, space, [TIME], seed, options)
        while len(found) < trials and (asked := made.ask(min(AT_ONCE, trials - len(found)))):
            self._executor.submit(asked, math.inf)
            told: dict[str, Trial] = {}
            for answer in self._executor.answers():
                candidate = asked[answer.position]
                told[candidate.hash] = Trial(candidate, answer.outcome, len(found))
                cost = told[candidate.hash].cost(TIME)
                best = best if cost is None else min(best, cost)
                curve.append((round(time.monotonic() - begun, 4), best))
            made.tell([told[candidate.hash] for candidate in asked])
            found += told.values()
        return curve, found


@contextmanager
def machine(name: str, cores: int = 1) -> Generator[Machine]:
    """Start the workers for a program."""
    task = task_of(LEVEL, program_named(name), Settings(cores=cores))
    with LocalExecutor(LEVEL.evaluator(task, final=False), workers=2) as executor:
        executor.submit([Candidate()], math.inf)
        list(executor.answers())
        yield Machine(name, executor, cores)


def read(path: Path) -> list[Line]:
    """Read what was made."""
    if not path.exists():
        return []
    return [Line(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def append(path: Path, line: Line) -> None:
    """Add a search."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(vars(line)) + "\n")
