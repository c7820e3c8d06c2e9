"""What a candidate does, told without measuring anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planish.core.capabilities import NOTES, HasFigures
from planish.core.errors import StoreError
from planish.core.protocols import Level
from planish.core.step import Candidate
from planish.core.task import Task


def describe(
    level: Level,
    task: Task,
    candidate: Candidate,
    figures: Mapping[str, Any],
    notes: Sequence[str] | None = None,
) -> Mapping[str, str]:
    """Show what a candidate does: title to text.

    Args:
        level: of the task.
        task: what was tuned.
        candidate: what is shown.
        figures: what its run measured for that; empty where it did not.
        notes: how its run measured, in sentences; None where that is not known.

    Raises:
        StoreError: the figures are no such figures: they are from a store that is damaged.
    """
    if not isinstance(level, HasFigures):
        return level.describe(task, candidate)
    try:
        return level.describe(task, candidate, figures if notes is None else {**figures, NOTES: [*notes]})
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if not figures:
            raise
        told = f"the figures of a finalist cannot be read: {type(error).__name__}: {error}"
        raise StoreError(told, "Tune again.") from error
