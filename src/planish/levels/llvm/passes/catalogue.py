"""Catalogue of LLVM's passes: those that a list may hold, and those kept out, with the reason.

It includes what is known of passes without running them: what they cost, which of them break some
modules, and the coreset, few lists of which one is good for most functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from planish.core import ProgramError, did_you_mean

Nesting = Literal["module", "cgscc", "function", "loop", "loop-mssa"]
"""The manager that a pass runs in; `loop-mssa` is the one of loops that keeps MemorySSA."""


@dataclass(frozen=True)
class PassElement:
    """One pass with its parameters, or one of LLVM's own pipelines: the element that pass lists are made of.

    Args:
        text: as in a pipeline: "sroa<modify-cfg>". It names the element everywhere.
        nesting: the manager that it runs in.
        tier: 1 where (nearly) all of LLVM's default pipelines have it; 2 where it is off by default and
            passed the tests of soundness.
        what: what it does, in one line.
        aliases: other texts that LLVM reads as the same pass, as `opt -print-pipeline-passes` writes it.
        varies: whether it may make other code for the same code, as where it goes by addresses in memory.
    """

    text: str
    nesting: Nesting
    tier: Literal[1, 2]
    what: str
    aliases: tuple[str, ...] = ()
    varies: bool = False

    @property
    def name(self) -> str:
        """The pass without its parameters: "sroa"."""
        return base_name(self.text)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters in their order: ("modify-cfg",)."""
        return tuple(filter(None, self.text.removeprefix(self.name).strip("<>").split(";")))

    @property
    def is_pipeline(self) -> bool:
        """Return whether it is one of LLVM's own pipelines, which costs as much as some fifty passes."""
        return self.name in ("default", "function-simplification")


def base_name(text: str) -> str:
    """Return a pass's text without its parameters."""
    return text.partition("<")[0]


@cache
def elements() -> Mapping[str, PassElement]:
    """Return the catalogue: text to element, in a fixed order."""
    rows = _data()["elements"]
    return {row["text"]: PassElement(**row | {"aliases": tuple(row.get("aliases", ()))}) for row in rows}


@cache
def exclusions() -> Mapping[str, str]:
    """Return the passes that are kept out: name to reason."""
    return _data()["excluded"]


def find_element(text: str) -> PassElement:
    """Look a pass up by its text, or by another text that LLVM reads as the same pass.

    Raises:
        ProgramError: the pass is unknown, unknown with these parameters, or kept out; with the reason.
    """
    found = _spellings().get(text)
    if found is None:
        raise _unknown(text)
    return found


def vary(texts: Iterable[str]) -> bool:
    """Return whether the code that a list of passes makes may differ from run to run."""
    known = _spellings()
    return any(known[text].varies for text in texts if text in known)


def _unknown(text: str) -> ProgramError:
    name = base_name(text)
    variants = [element.text for element in elements().values() if element.name == name]
    # A pass is kept out whole, or with some of its parameters.
    reason = exclusions().get(text) or ("" if variants else exclusions().get(name))
    if reason:
        return ProgramError(f"pass '{text}' is kept out", f"Reason: {reason}.")
    if variants:
        return ProgramError(f"pass '{name}' is not known as '{text}'", f"Known: {', '.join(variants)}.")
    return ProgramError(f"unknown pass '{text}'", did_you_mean(text, _spellings()))


@cache
def _spellings() -> Mapping[str, PassElement]:
    return {text: e for e in elements().values() for text in (e.text, *e.aliases)}


def _data() -> dict[str, Any]:
    return json.loads((files("planish.levels.llvm.passes") / "catalogue.json").read_text(encoding="utf-8"))


PIPELINE = 40.0
"""Passes that take as long as one of LLVM's own pipelines.

By least squares over 63 lists and 120 functions: 0.017 ms a pass and 0.67 ms a pipeline; what is predicted so
has a correlation of 0.97 with what was measured."""


def pass_cost(passes: Sequence[str]) -> float:
    """Return about how long a list takes, in passes that are not pipelines.

    Raises:
        ProgramError: the catalogue lacks one of them.
    """
    return sum(PIPELINE if find_element(text).is_pipeline else 1.0 for text in passes)


MERGES = "mergereturn"
"""It leaves a function one return, and so puts code between a `musttail` call and its own: that is invalid.

Of the passes of the catalogue it is the only one."""
_CALL = " musttail call "


def drop_unsafe_passes(passes: Iterable[str], ir: str) -> tuple[str, ...]:
    """Leave out what is known to break a module."""
    return tuple(text for text in passes if text != MERGES or _CALL not in ir)


@cache
def load_coreset(objective: str = "instructions") -> tuple[tuple[str, ...], ...]:
    """Return the shipped coreset: lists by greedy cover over training functions, the most useful first.

    Args:
        objective: what is to be made less. A file `coreset-OBJECTIVE.json` of this package is read where
            there is one; else the lists that were chosen by instructions.

    Returns:
        Lists of passes, as the catalogue writes them.
    """
    folder = files("planish.levels.llvm.passes")
    own = folder / f"coreset-{objective}.json"
    file = own if own.is_file() else folder / "coreset.json"
    return tuple(tuple(passes) for passes in json.loads(file.read_text(encoding="utf-8"))["lists"])
