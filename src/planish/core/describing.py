"""What a candidate does, told without measuring anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planish.core.capabilities import HasFigures
from planish.core.errors import StoreError
from planish.core.protocols import Level
from planish.core.step import Candidate
from planish.core.task import Task


def describe(level: Level, task: Task, candidate: Candidate, figures: Mapping[str, Any]) -> Mapping[str, str]:
    """Show what a candidate does: title to text.

    Args:
        level: of the task.
        task: what was tuned.
        candidate: what is shown.
        figures: what its run measured for that; empty where it did not.

    Raises:
        StoreError: the figures are no such figures: they are from a store that is damaged.
    """
    if not isinstance(level, HasFigures):
        return level.describe(task, candidate)
    try:
        return level.describe(task, candidate, figures)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if not figures:
            raise
        told = f"the figures of a finalist cannot be read: {type(error).__name__}: {error}"
        raise StoreError(told, "Tune again.") from error
