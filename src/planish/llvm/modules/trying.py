"""What lists do to functions, measured. What LLVM refuses costs the trial alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from planish.llvm.backend import IRError, PassError
from planish.llvm.backend.capi.definitions import WITHOUT
from planish.llvm.backend.capi.module import CModule
from planish.llvm.backend.elf import function_bytes

Sizes = Mapping[str, int]
"""A function's name to its cost."""
_NUMBERS = re.compile(r"([#!])\d+")


@dataclass(frozen=True)
class TriedLists:
    """What functions cost after a list, and what texts cost that were not known before."""

    sizes: Sizes
    texts: Mapping[str, int]


@dataclass(frozen=True)
class Trier:
    """Measures functions. Code is made only of those whose text is new.

    Args:
        objective: what is measured.
        known: the texts that functions became, as `_named` names them, and what those cost.
    """

    objective: str
    known: dict[str, int] = field(default_factory=dict[str, int])

    def try_list(self, module: CModule, pipeline: str) -> TriedLists | None:
        """Measure the functions of a module after a pipeline; None where LLVM refuses it."""
        with closing(module.clone()) as copy:
            try:
                copy.run(pipeline)
                return None if copy.verify() else self.measure(copy)
            except (PassError, IRError):
                return None

    def measure(self, module: CModule) -> TriedLists:
        """Measure the functions of a module, of which no more is made afterwards."""
        definitions = module.definitions()
        if self.objective == "instructions":
            return TriedLists(definitions.instructions(), {})
        texts = {name: _named(name, text) for name, text in definitions.texts().items() if name}
        fresh = {name for name, text in texts.items() if text not in self.known}
        new = dict[str, int]()
        if fresh:
            # Code generation takes most of the time, and most lists leave most functions as they were.
            keep_only(module, fresh)
            found = function_bytes(module.object_code())
            new = {texts[name]: found[name] for name in fresh if name in found}
        known = {**self.known, **new}
        return TriedLists({name: known[text] for name, text in texts.items() if text in known}, new)


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
