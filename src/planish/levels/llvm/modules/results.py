"""Results of searches within modules: what they found, and what is remembered of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from planish.core.hashing import content_hash
from planish.levels.llvm.modules.budget import EvaluationBudget

Inlining = tuple[tuple[str, str], ...]
"""Functions that are inlined otherwise than LLVM would: "noinline" (nowhere) or "alwaysinline"."""


class Memory(Protocol):
    """Keeps what was found for functions, from one module and build to the next.

    A key names the function by its content, and the toolchain; a value is what was found, as JSON. Neither
    need be understood, and what is lost is searched again.
    """

    def get(self, key: str) -> str | None:
        """Return the value of a key; None where there is none."""
        ...

    def put(self, key: str, value: str) -> None:
        """Keep a value in place of the key's old one."""
        ...


@dataclass(frozen=True)
class ModuleRecipe:
    """Recipe by which a module is made again.

    Args:
        passes: what is run on the whole module first, as `opt -passes=` takes it.
        lists: then on single functions: the pipeline, and the functions that it is run on; all others are
            kept out. One without functions is run on all.
        last: what is run on the whole module at the end.
        inlining: attributes that functions have while `passes` are run, and no longer.
    """

    passes: str
    lists: tuple[tuple[str, tuple[str, ...]], ...]
    last: str
    inlining: Inlining = ()


def read_recipe(data: Mapping[str, Any]) -> ModuleRecipe:
    """Read a recipe that was written as JSON."""
    lists = tuple((pipeline, tuple(names)) for pipeline, names in data["lists"])
    inlining = tuple((name, attribute) for name, attribute in data["inlining"])
    return ModuleRecipe(data["passes"], lists, data["last"], inlining)


_EVERY_S, _SHARE = 0.4, 0.1
"""What is found so far is kept after so many seconds again, and such a share of the time."""


@dataclass(frozen=True)
class CachedResult:
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
        """Return whether it had as much as another search has."""
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
class Checkpoint:
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
        self.memory.put(self.key, CachedResult(recipe(), total, 0.0, 0).to_json())


def key_of(version: str, objective: str, code: str | bytes) -> str:
    """Name a module, what is made less, and by which LLVM."""
    data = code.encode(errors="surrogateescape") if isinstance(code, str) else code
    return content_hash(f"{version} {objective} {hashlib.sha256(data).hexdigest()}")


def read_known(text: str | None) -> CachedResult | None:
    """Read what `to_json` wrote; None for what is not of this kind."""
    if text is None:
        return None
    try:
        data = json.loads(text)
        seconds, evaluations = data["budget"]
        return CachedResult(
            read_recipe(data), int(data["total"]), float(seconds), evaluations, int(data["tried"])
        )
    except (ValueError, KeyError, TypeError):
        return None
