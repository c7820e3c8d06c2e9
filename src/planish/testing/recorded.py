"""Executor that answers from a recording, so that searchers are compared in seconds; how one is made."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from planish.core import (
    Candidate,
    CanEnumerate,
    Evaluation,
    EvaluatorSpec,
    Executor,
    Failed,
    Objective,
    Outcome,
    SequentialExecutor,
    evaluate,
)
from planish.core.recording import Recording


class ReplayExecutor(SequentialExecutor):
    """Answers from a recorded table, at once; a candidate that is not in it has failed.

    Args:
        table: candidate hash to outcome.
        seconds: candidate hash to seconds by stage.
    """

    capacity = 64

    def __init__(self, table: Mapping[str, Outcome], seconds: Mapping[str, Mapping[str, float]]) -> None:
        super().__init__()
        self._table = table
        self._seconds = seconds

    def _set_evaluator(self, spec: EvaluatorSpec) -> None:
        """Keep the table, whatever is to be evaluated."""

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        unknown = Failed("run", "not recorded", f"{candidate} is not in the recorded table")
        outcome = self._table.get(candidate.hash, unknown)
        return Evaluation(candidate, outcome, self._seconds.get(candidate.hash, {}))


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
        for result in evaluate(executor, some):
            outcomes[result.candidate.hash] = result.outcome
            seconds[result.candidate.hash] = result.seconds
    return Recording(task, name, objective, outcomes, seconds)
