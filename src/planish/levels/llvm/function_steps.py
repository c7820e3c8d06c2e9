"""Steps on single functions of a module: an attribute for inlining, and a pipeline of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planish.core import Step


@dataclass(frozen=True)
class FunctionAttribute(Step):
    """Give a function an attribute while the passes on the whole module run, which inline.

    Args:
        function: its name in the module.
        attribute: "noinline" (it is inlined nowhere) or "alwaysinline" (it is inlined everywhere).
    """

    function: str
    attribute: Literal["noinline", "alwaysinline"]

    def __str__(self) -> str:
        return f"{self.attribute} {self.function}"


@dataclass(frozen=True)
class FunctionPasses(Step):
    """Run a pipeline of function passes on some functions; all others are kept out.

    Args:
        pipeline: as `opt -passes=` takes it.
        functions: their names in the module.
    """

    pipeline: str
    functions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.pipeline} on {', '.join(self.functions)}"
