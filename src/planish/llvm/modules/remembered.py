"""What is remembered of a module: how it was made at its best, and what was spent on that."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from planish.core.canonical import content_hash
from planish.llvm.modules.evaluation_budget import EvaluationBudget
from planish.llvm.modules.module_result import ModuleRecipe, read_recipe


@dataclass(frozen=True)
class Known:
    """A search that was made.

    Args:
        recipe: the best that it made.
        total: what the functions cost then; 0: that was not measured.
        seconds: that it had.
        evaluations: that it might make; None: any number.
    """

    recipe: ModuleRecipe
    total: int
    seconds: float
    evaluations: int | None

    def is_enough(self, spending: EvaluationBudget) -> bool:
        """Whether it had as much as another search has."""
        unlimited = float("inf")
        had = unlimited if self.evaluations is None else self.evaluations
        asked = unlimited if spending.evaluations is None else spending.evaluations
        return self.seconds >= spending.seconds and had >= asked

    def to_json(self) -> str:
        """Write it."""
        return json.dumps(
            {"budget": [self.seconds, self.evaluations], "total": self.total, **asdict(self.recipe)}
        )


def key_of(version: str, objective: str, code: str | bytes) -> str:
    """Name a module, what is made less, and by which LLVM."""
    data = code.encode(errors="surrogateescape") if isinstance(code, str) else code
    return content_hash(f"{version} {objective} {hashlib.sha256(data).hexdigest()}")


def read_known(text: str | None) -> Known | None:
    """Read what `to_json` wrote; None for what is not of this kind."""
    if text is None:
        return None
    try:
        data = json.loads(text)
        seconds, evaluations = data["budget"]
        return Known(read_recipe(data), int(data["total"]), float(seconds), evaluations)
    except (ValueError, KeyError, TypeError):
        return None
