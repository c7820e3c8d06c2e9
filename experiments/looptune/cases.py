"""A tensor program whose schedules are measured in this process, and searches of them within a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from programs import cursor_space

from planish.core import Candidate, Measured, Space, Stage, Trial
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsEvaluatorSpec, LoopsLevel
from planish.search.factory import make_searcher

SEARCHES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "greedy, look-ahead 1": ("greedy1", {}),
    "greedy, look-ahead 2": ("greedy2", {}),
    "beam 2, depth first": ("beam-dfs", {"width": 2}),
    "beam 4, depth first": ("beam-dfs", {"width": 4}),
    "beam 2, breadth first": ("beam-bfs", {"width": 2}),
    "beam 4, breadth first": ("beam-bfs", {"width": 4}),
    "random": ("random", {}),
}
SAMPLES = 16
TURNS = 5
"""How often what was chosen is timed at the end."""


class Case:
    """A program, and how fast its schedules are.

    Args:
        program: what is computed.
    """

    def __init__(self, program: Program) -> None:
        self.space = cursor_space(program)
        target = LoopsLevel().target(program, 1)
        self._evaluator = LoopsEvaluatorSpec(program, target)()
        self._again = LoopsEvaluatorSpec(program, target, final=True)()

    def trial(self, candidate: Candidate, place: int) -> Trial:
        """Build, verify and time a schedule."""
        return Trial(candidate, self._evaluator.evaluate(candidate, untimed), place, 0)

    def rate(self, candidate: Candidate) -> float:
        """Give GFLOPS, as they were measured when the schedule was met first."""
        return rate_of(self.trial(candidate, 0))

    def rate_anew(self, candidate: Candidate) -> float:
        """Give GFLOPS, measured now: in a search what was measured once is remembered."""
        return rate_of(Trial(candidate, self._again.evaluate(candidate, untimed), 0, 0))


@contextmanager
def untimed(stage: Stage) -> Generator[None]:
    """Time no stage."""
    del stage
    yield


def rate_of(trial: Trial) -> float:
    """Give GFLOPS; 0 for a failure."""
    return trial.outcome.values["gflops"] if isinstance(trial.outcome, Measured) else 0.0


def searched(
    case: Case,
    name: str,
    options: Mapping[str, Any],
    moments: tuple[float, float],
    space: Space | None = None,
) -> list[Candidate]:
    """Search the case's space, or another one, and give the best candidate after each of two moments.

    The moments are in seconds of processor time: what others do on the machine takes nothing from a search.
    """
    searcher = make_searcher(name, space or case.space, [LoopsLevel.objectives["gflops"]], 0, options)
    begun, place, rate = time.process_time(), 0, 0.0
    best, found = case.space.start(), list[Candidate]()
    while time.process_time() < begun + moments[1] and (asked := searcher.ask(8)):
        trials = [case.trial(candidate, place + number) for number, candidate in enumerate(asked)]
        place += len(asked)
        searcher.tell(trials)
        if not found and time.process_time() > begun + moments[0]:
            found.append(best)
        first = max(trials, key=rate_of)
        if rate_of(first) > rate:
            best, rate = first.candidate, rate_of(first)
    return [*found, *[best] * (2 - len(found))]


def remeasured(case: Case, chosen: Mapping[str, Candidate]) -> dict[str, float]:
    """Time what was chosen once more, alternately, and return medians, since a single timing may be lucky."""
    different = {case.space.state_key(candidate): candidate for candidate in chosen.values()}
    rates = [{state: case.rate_anew(one) for state, one in different.items()} for _ in range(TURNS)]
    return {
        way: statistics.median(turn[case.space.state_key(candidate)] for turn in rates)
        for way, candidate in chosen.items()
    }


def beside(rows: Sequence[Mapping[str, float]], way: str, rivals: Sequence[str], name: str) -> str:
    """Say what a way has of the best of others, case by case, and how often it is ahead."""
    shares = [row[way] / max(row[rival] for rival in rivals) for row in rows]
    mean, ahead = statistics.geometric_mean(shares), sum(share > 1 for share in shares)
    return (
        f"Of {name}, '{way}' has {mean:.3f} in the mean, {min(shares):.3f} at least, "
        f"and is ahead in {ahead} of {len(rows)}."
    )
