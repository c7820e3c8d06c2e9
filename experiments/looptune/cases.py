"""A tensor program whose schedules are measured in this process, and searches of them within a time."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager

from planish.core import Candidate, Measured, Stage, Trial
from planish.loops.evaluator import LoopsEvaluatorSpec
from planish.loops.lang.program import Program
from planish.loops.level import LoopsLevel
from planish.loops.space import CursorSpace
from planish.search.factory import make_searcher

SEARCHES: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "greedy, look-ahead 1": ("greedy1", {}),
    "greedy, look-ahead 2": ("greedy2", {}),
    "beam 2, depth first": ("beam-dfs", {"width": 2}),
    "beam 4, depth first": ("beam-dfs", {"width": 4}),
    "beam 2, breadth first": ("beam-bfs", {"width": 2}),
    "beam 4, breadth first": ("beam-bfs", {"width": 4}),
    "random": ("random", {}),
}
SAMPLES = 16


class Case:
    """A program, and how fast its schedules are.

    Args:
        program: what is computed.
    """

    def __init__(self, program: Program) -> None:
        self.space = CursorSpace(program)
        self._evaluator = LoopsEvaluatorSpec(program, LoopsLevel().target(program, 1))()

    def trial(self, candidate: Candidate, place: int) -> Trial:
        """Build, verify and time a schedule."""
        return Trial(candidate, self._evaluator.evaluate(candidate, untimed), place, 0)

    def rate(self, candidate: Candidate) -> float:
        """Give GFLOPS."""
        return rate_of(self.trial(candidate, 0))


@contextmanager
def untimed(stage: Stage) -> Generator[None]:
    """Time no stage."""
    del stage
    yield


def rate_of(trial: Trial) -> float:
    """Give GFLOPS; 0 for a failure."""
    return trial.outcome.values["gflops"] if isinstance(trial.outcome, Measured) else 0.0


def searched(case: Case, name: str, options: Mapping[str, int], moments: tuple[float, float]) -> list[float]:
    """Search, and give the best rate after each of two moments."""
    searcher = make_searcher(name, case.space, [LoopsLevel.objectives["gflops"]], 0, options)
    begun, best, found, place = time.monotonic(), 0.0, list[float](), 0
    while time.monotonic() < begun + moments[1] and (asked := searcher.ask(8)):
        trials = [case.trial(candidate, place + number) for number, candidate in enumerate(asked)]
        place += len(asked)
        searcher.tell(trials)
        if not found and time.monotonic() > begun + moments[0]:
            found.append(best)
        best = max(best, *map(rate_of, trials))
    return [*found, *[best] * (2 - len(found))]
