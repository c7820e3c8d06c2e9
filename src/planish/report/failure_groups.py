"""Failures, grouped by what they have in common."""

from collections.abc import Sequence
from dataclasses import dataclass

from planish.core import Candidate, Failed, Trial


@dataclass(frozen=True)
class FailureGroup:
    """Trials that failed alike.

    Args:
        stage: where.
        reason: why.
        count: how many.
        share: of all trials, from 0 to 1.
        detail: of the first.
        example: the first's candidate.
    """

    stage: str
    reason: str
    count: int
    share: float
    detail: str
    example: Candidate


def failure_groups(trials: Sequence[Trial]) -> list[FailureGroup]:
    """Group the failed trials by stage and reason, the most frequent first."""
    groups: dict[tuple[str, str], list[tuple[Candidate, Failed]]] = {}
    for trial in trials:
        if isinstance(trial.outcome, Failed):
            key = (trial.outcome.stage, trial.outcome.reason)
            groups.setdefault(key, []).append((trial.candidate, trial.outcome))
    found = [
        FailureGroup(stage, reason, len(cases), len(cases) / len(trials), cases[0][1].detail, cases[0][0])
        for (stage, reason), cases in groups.items()
    ]
    return sorted(found, key=lambda group: -group.count)
