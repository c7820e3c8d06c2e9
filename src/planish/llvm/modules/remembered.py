"""What is remembered of a module: how it was made at its best, and what was spent on that."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

from planish.core.canonical import content_hash
from planish.llvm.modules.evaluation_budget import EvaluationBudget
from planish.llvm.modules.module_result import Memory, ModuleRecipe, read_recipe

_EVERY_S, _SHARE = 0.4, 0.1
"""What is found so far is kept after so many seconds again, and such a share of the time."""


@dataclass(frozen=True)
class Known:
    """A search that was made.

    Args:
        recipe: the best that it made.
        total: what the functions cost then; 0: that was not measured.
        seconds: that it had, with those of searches that were cut short before it.
        evaluations: that it might make; None: any number.
        tried: how many pairs of a list and a part of the module; another search goes on behind them.
    """

    recipe: ModuleRecipe
    total: int
    seconds: float
    evaluations: int | None
    tried: int = 0

    def is_enough(self, spending: EvaluationBudget) -> bool:
        """Whether it had as much as another search has."""
        unlimited = float("inf")
        had = unlimited if self.evaluations is None else self.evaluations
        asked = unlimited if spending.evaluations is None else spending.evaluations
        return self.seconds >= spending.seconds and had >= asked

    def to_json(self) -> str:
        """Write it."""
        return json.dumps(
            {
                "budget": [self.seconds, self.evaluations],
                "total": self.total,
                "tried": self.tried,
                **asdict(self.recipe),
            }
        )


@dataclass
class Interim:
    """Keeps now and then what a search has found so far: another one goes on where it is interrupted.

    Args:
        memory: where; None: nowhere.
        key: of the module.
        spending: of the search.
        least: what was kept comes to, at the functions' cost; only less is kept in its place.
    """

    memory: Memory | None
    key: str
    spending: EvaluationBudget
    least: float
    _next_s: float = 0.0

    def keep(self, total: int, recipe: Callable[[], ModuleRecipe]) -> None:
        """Keep what functions are expected to cost, and how, where it is time for that."""
        if self.memory is None or total >= self.least or self.spending.passed < self._next_s:
            return
        self.least = total
        self._next_s = self.spending.passed + max(_EVERY_S, self.spending.seconds * _SHARE)
        # As what no time was spent on: no search takes it for enough.
        self.memory.put(self.key, Known(recipe(), total, 0.0, 0).to_json())


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
        return Known(read_recipe(data), int(data["total"]), float(seconds), evaluations, int(data["tried"]))
    except (ValueError, KeyError, TypeError):
        return None
