"""Replaying a recorded table of a whole space, so that searchers are compared in seconds."""

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from planish.core import (
    Candidate,
    CanEnumerate,
    EvaluatorSpec,
    Executor,
    Failed,
    Objective,
    Outcome,
    evaluate,
)
from planish.executors.recording import Recording


@dataclass(frozen=True)
class Replayed:
    """One answer: the candidate's place in the batch, its outcome, and its recorded seconds by stage."""

    position: int
    outcome: Outcome
    seconds: Mapping[str, float]
    host: str = ""


class ReplayExecutor:
    """Answers from a recorded table, at once; a candidate that is not in it has failed.

    Args:
        table: candidate hash to outcome.
        seconds: candidate hash to seconds by stage.
    """

    capacity = 64
    notes: Sequence[str] = ()

    def __init__(self, table: Mapping[str, Outcome], seconds: Mapping[str, Mapping[str, float]]) -> None:
        self._table = table
        self._seconds = seconds
        self._queue: deque[Replayed] = deque()
        self._submitted = 0
        self.losses: Counter[str] = Counter()

    def serve(self, factory: EvaluatorSpec) -> None:
        """Answer from the same table."""
        del factory

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        """Look candidates up; they cost no time, so there is no deadline that they miss."""
        del deadline
        self._submitted = self._submitted if self._queue else 0
        for position, candidate in enumerate(candidates, self._submitted):
            unknown = Failed("run", "not recorded", f"{candidate} is not in the recorded table")
            outcome = self._table.get(candidate.hash, unknown)
            self._queue.append(Replayed(position, outcome, self._seconds.get(candidate.hash, {})))
        self._submitted += len(candidates)

    def answers(self) -> Iterator[Replayed]:
        """Give what was found, in the order of submission."""
        while self._queue:
            yield self._queue.popleft()

    def cancel(self) -> None:
        """Forget what was submitted."""
        self._queue.clear()

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
        for answer in evaluate(executor, some):
            outcomes[some[answer.position].hash] = answer.outcome
            seconds[some[answer.position].hash] = answer.seconds
    return Recording(task, name, objective, outcomes, seconds)
