"""Costs of a module's functions, one by one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field

from planish.levels.llvm.bindings.c_definitions import WITHOUT
from planish.levels.llvm.bindings.c_module import CModule
from planish.levels.llvm.bindings.protocol import IRError, PassError
from planish.levels.llvm.modules.code_attributes import best_code
from planish.levels.llvm.modules.transform import Sizes

_VARIANTS = {"loaded_bytes": (("-minsize",), ("frame-pointer=all",))}
"""Changes of attributes by which functions are measured, too: those that decide most often."""
_NUMBERS = re.compile(r"([#!])\d+")


@dataclass(frozen=True)
class FunctionCosts:
    """Measures functions. Code is made only of those whose text is new.

    Args:
        objective: what is measured: `text_bytes`, `instructions`, or `loaded_bytes` (code and unwind tables).
        known: the texts that functions became, as `_named` names them, and what those cost.
    """

    objective: str
    known: dict[str, int] = field(default_factory=dict[str, int])

    def try_list(self, module: CModule, pipeline: str) -> Sizes | None:
        """Return the costs of a module's functions after a pipeline; None where LLVM refuses it."""
        with closing(module.clone()) as copy:
            try:
                copy.run(pipeline)
                return None if copy.verify() else self.measure(copy)[0]
            except (PassError, IRError):
                return None

    def measure(self, module: CModule) -> tuple[Sizes, int]:
        """Measure the functions of a module, of which no more is made afterwards.

        Returns:
            Their costs, and the bytes that the code which was made has besides functions.
        """
        definitions = module.definitions()
        if self.objective == "instructions":
            return definitions.instructions(), 0
        texts = {name: _named(name, text) for name, text in definitions.texts().items() if name}
        fresh, rest = {name for name, text in texts.items() if text not in self.known}, 0
        if fresh:
            # Code generation takes most of the time, and most lists leave most functions as they were.
            keep_only(module, fresh)
            made = best_code(module, self.objective, _VARIANTS.get(self.objective, ()))
            found = made.sizes
            self.known.update((texts[name], found[name]) for name in fresh if name in found)
            rest = made.total - sum(found[name] for name in fresh if name in found)
        return {name: self.known[text] for name, text in texts.items() if text in self.known}, rest


def keep_only(module: CModule, names: Collection[str]) -> None:
    """Make declarations of all definitions of a module but some, and those that aliases need."""
    definitions = module.definitions()
    definitions.leave_out([name for name in definitions.by_name if name not in names])
    module.run(WITHOUT)


def plain_text(text: str) -> str:
    """Leave out of a function's text the numbers that follow from what else is in its module."""
    return _NUMBERS.sub(r"\1", text)


def _named(name: str, text: str) -> str:
    """Name a function's text."""
    plain = plain_text(f"{name} {text}")
    return hashlib.sha256(plain.encode(errors="surrogateescape")).hexdigest()
