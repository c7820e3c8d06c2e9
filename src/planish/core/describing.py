"""What a candidate does, told without measuring anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planish.core.capabilities import HasFigures
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
    """
    if isinstance(level, HasFigures):
        return level.describe(task, candidate, figures)
    return level.describe(task, candidate)
