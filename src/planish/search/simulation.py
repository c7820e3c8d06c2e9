"""Replaying a recorded table of a whole space, so that searchers are compared in seconds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from planish.core import Candidate, CanEnumerate, Executor, Failed, Objective, Outcome
from planish.search.recording import Recording


@dataclass(frozen=True)
class Replayed:
    """One answer: the candidate's place in the batch, its outcome, and its recorded seconds by stage."""

    position: int
    outcome: Outcome
    seconds: Mapping[str, float]


class SimulationExecutor:
    """Answers from a recorded table, at once; a candidate that is not in it has failed.

    Args:
        table: candidate hash to outcome.
        seconds: candidate hash to seconds by stage.
    """

    def __init__(self, table: Mapping[str, Outcome], seconds: Mapping[str, Mapping[str, float]]) -> None:
        self._table = table
        self._seconds = seconds

    def submit(self, candidates: Sequence[Candidate]) -> Iterator[Replayed]:
        """Look a batch up; the answers come in its order."""
        for position, candidate in enumerate(candidates):
            unknown = Failed("run", "not recorded", f"{candidate} is not in the recorded table")
            outcome = self._table.get(candidate.hash, unknown)
            yield Replayed(position, outcome, self._seconds.get(candidate.hash, {}))

    def close(self) -> None:
        """Do nothing: there are no workers."""


def record(
    task: str, space: CanEnumerate, name: str, objective: Objective, executor: Executor, batch: int = 64
) -> Recording:
    """Measure every candidate of a finite space.

    Args:
        task: the canonical text of the task.
        space: what to list.
        name: the space's name in its level.
        objective: what the table is to be compared by.
        executor: what measures; it is not closed.
        batch: candidates that are given to it at once.
    """
    outcomes: dict[str, Outcome] = {}
    seconds: dict[str, Mapping[str, float]] = {}
    candidates = space.candidates()
    while some := list(islice(candidates, batch)):
        for answer in executor.submit(some):
            outcomes[some[answer.position].hash] = answer.outcome
            seconds[some[answer.position].hash] = answer.seconds
    return Recording(task, name, objective, outcomes, seconds)
