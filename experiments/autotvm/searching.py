"""Programs of the experiments, where they run, and searches that measure them."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from representations import represented

from planish.core import Candidate, Failed, Measured, Task, Trial, evaluate_in_order
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import RESNET18, convolution, matmul
from planish.measure.executors import LocalExecutor
from planish.search import make_searcher
from planish.train.cost_models import SHIPPED, random_programs
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

LEVEL = LoopsLevel()
TIME = LEVEL.objectives["time_s"]
AT_ONCE = 8
"""Candidates that are asked for, and measured, at once."""
PRODUCTS = (
    *[f"{n}x{n}x{n}" for n in (64, 128, 192, 256, 384, 512, 768, 1024)],
    "32x1024x1024",
    "128x768x3072",
)
"""The ten of the experiments."""
DRAWN = "drawn-"
"""And a number: a program of `collect.py`. The shipped model knows those below 240, and figures have none."""

Curve = Sequence[tuple[float, float]]
Options = Mapping[str, str | int | float | bool]
Tried = tuple[Candidate, float | None]
"""A candidate, and its seconds; None where it failed."""


@dataclass(frozen=True)
class Setting:
    """A program, and where it runs.

    Args:
        name: of one of ResNet-18's convolutions, C1 to C12, or of a product, as 64x64x64, or of a drawn
            program, as drawn-302.
        cores: that it may use.
        backend: that makes its code; empty for the widest vectors.
        dtype: the element type; of a drawn program always float32.
    """

    name: str
    cores: int = 1
    backend: str = ""
    dtype: str = "float32"

    @property
    def text(self) -> str:
        """Name the setting."""
        cores = f"{self.cores}-cores" if self.cores > 1 else ""
        dtype = "" if self.dtype == "float32" else self.dtype
        backend = self.backend.replace(":", "-")
        return "-".join(part for part in (self.name, backend, cores, dtype) if part)

    @property
    def program(self) -> Program:
        """Make the program."""
        if self.name in RESNET18:
            made = convolution(*RESNET18[self.name], self.dtype)
        elif self.name.startswith(DRAWN):
            made = _drawn(int(self.name.removeprefix(DRAWN)))
        else:
            m, n, k = map(int, self.name.split("x"))
            made = matmul(m, n, k, self.dtype)
        return replace(made, backend=self.backend)


def _drawn(number: int) -> Program:
    while len(_DRAWN) <= number:
        _DRAWN.append(next(_DRAWING))
    return _DRAWN[number]


_DRAWN, _DRAWING = list[Program](), random_programs(SHIPPED)
"""Programs that were drawn so far, and the rest."""


class Machine:
    """Measures candidates of one program.

    Args:
        task: the program and target.
        executor: that has its evaluator.
    """

    def __init__(self, task: Task[Program], executor: LocalExecutor) -> None:
        self._task, self._executor = task, executor

    def measure(self, candidates: Sequence[Candidate]) -> list[float | None]:
        """Give the seconds of each; None where it failed."""
        found = evaluate_in_order(self._executor, candidates)
        return [Trial(each.candidate, each.outcome).cost(TIME) if each else None for each in found]

    def search(
        self, searcher: str, options: Options, seed: int, trials: int, seconds: float
    ) -> tuple[Curve, list[Tried]]:
        """Search; all that the searcher takes counts in the seconds."""
        begun, best = time.monotonic(), math.inf
        curve, found = list[tuple[float, float]](), list[Tried]()
        space = represented(self._task.program, self._task.target)
        made = make_searcher(searcher, space, [TIME], seed, options)
        while len(found) < trials and time.monotonic() < begun + seconds:
            asked = made.ask(min(AT_ONCE, trials - len(found)))
            if not asked:
                break
            costs = self.measure(asked)
            made.tell(trials_of(asked, costs, len(found)))
            for candidate, cost in zip(asked, costs, strict=True):
                best = best if cost is None else min(best, cost)
                curve.append((round(time.monotonic() - begun, 4), best))
                found.append((candidate, cost))
        return curve, found


def trials_of(candidates: Sequence[Candidate], costs: Sequence[float | None], first: int) -> list[Trial]:
    """Make the trials of what candidates cost."""
    outcomes = [
        Failed("run", "not measured", "") if cost is None else Measured({TIME.name: cost}) for cost in costs
    ]
    return [Trial(*pair, number) for number, pair in enumerate(zip(candidates, outcomes, strict=True), first)]


@contextmanager
def machine(setting: Setting) -> Generator[Machine]:
    """Start the workers for a program."""
    task = task_of(LEVEL, setting.program, Settings(cores=setting.cores))
    with LocalExecutor(LEVEL.evaluator(task, final=False), workers=2) as executor:
        executor.submit([Candidate()], math.inf)
        list(executor.results())
        yield Machine(task, executor)
