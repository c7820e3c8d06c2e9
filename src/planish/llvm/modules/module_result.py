"""What comes of a module, and what is remembered for the next time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Inlining = tuple[tuple[str, str], ...]
"""Functions that are inlined otherwise than LLVM would: "noinline" (nowhere) or "alwaysinline"."""


class Memory(Protocol):
    """Keeps what was found for functions, from one module and build to the next.

    A key names the function by its content, and the toolchain; a value is what was found, as JSON. Neither
    need be understood, and what is lost is searched again.
    """

    def get(self, key: str) -> str | None:
        """Give the value of a key; None where there is none."""
        ...

    def put(self, key: str, value: str) -> None:
        """Keep a value in place of the key's old one."""
        ...


@dataclass(frozen=True)
class ModuleProgress:
    """How far a search has come.

    Args:
        seconds: since its beginning.
        evaluations: lists that were run on functions.
        baseline: what -Oz makes of the module.
        total: what is expected of it with what was found so far.
    """

    seconds: float
    evaluations: int
    baseline: int
    total: int


@dataclass(frozen=True)
class FunctionGain:
    """A function that a list of its own makes smaller.

    Args:
        name: as the module calls it.
        passes: the list, as the catalogue writes its passes.
        before: what the function costs after -Oz.
        after: what it costs after the list.
    """

    name: str
    passes: tuple[str, ...]
    before: int
    after: int


@dataclass(frozen=True)
class ModuleRecipe:
    """How a module is made again.

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


@dataclass(frozen=True)
class Improved:
    """A module that was made smaller.

    Args:
        bitcode: the module.
        baseline: what -Oz makes of it, in the objective's unit.
        total: what this module has; never more.
        functions: those that are smaller than after -Oz, the greatest gain first.
        evaluations: lists that were run on functions.
        seconds: that it took.
        left_out: functions that were not searched, each with the reason.
        recipe: how it is made again.
        before: the module that -Oz makes, as bitcode.
    """

    bitcode: bytes
    baseline: int
    total: int
    functions: tuple[FunctionGain, ...]
    evaluations: int
    seconds: float
    left_out: tuple[tuple[str, str], ...]
    recipe: ModuleRecipe
    before: bytes
