"""What a selection does to a model."""

from __future__ import annotations

from collections.abc import Mapping

from planish.core import Candidate, Task


def described(task: Task, candidate: Candidate) -> Mapping[str, str]:
    """Show what a selection does."""
    del task
    return {"passes": "\n".join(map(str, candidate.steps)) or "(none)"}
