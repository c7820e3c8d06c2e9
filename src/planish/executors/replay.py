"""Replaying a recorded table of a whole space, so that searchers are compared in seconds."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from planish.executors.batch import Batch
from planish.executors.recording import Recording
from planish.isolation.guard import Answer


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
        self._batch = Batch()
        self.losses: Counter[str] = Counter()

    def serve(self, factory: EvaluatorSpec) -> None:
        """Answer from the same table."""
        del factory

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        """Have candidates looked up; they cost no time, so there is no deadline that they miss."""
        del deadline
        self._batch = self._batch if self._batch.unanswered else Batch()
        self._batch.add(candidates)

    def answers(self) -> Iterator[Answer]:
        """Give what was recorded, in the order of submission."""
        while self._batch:
            (position,), (candidate,) = self._batch.take(1)
            self._batch.answered(position)
            unknown = Failed("run", "not recorded", f"{candidate} is not in the recorded table")
            outcome = self._table.get(candidate.hash, unknown)
            yield Answer(position, outcome, self._seconds.get(candidate.hash, {}), host="")

    def cancel(self) -> None:
        """Forget what was submitted."""
        self._batch = Batch()

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
