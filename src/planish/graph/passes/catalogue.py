"""The catalogue: every pass that a selection may hold, and those that are kept out, with the reason."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from planish.core import ProgramError, did_you_mean

Kind = Literal["onnxoptimizer", "onnxscript", "planish", "intent", "rule", "transformer"]
"""Whose pass it is; `rule` and `transformer` are ONNX Runtime's. What a user must intend changes results."""

EXACT: tuple[Kind, ...] = ("onnxoptimizer", "onnxscript", "planish")
"""Those that make a model which computes the same."""
REWRITING: tuple[Kind, ...] = (*EXACT, "intent")
RUNTIME = ("rule", "transformer")


@dataclass(frozen=True)
class GraphPass:
    """One pass.

    Args:
        name: names it everywhere: "onnxoptimizer.fuse_bn_into_conv", "NchwcTransformer".
        kind: whose it is.
        what: what it does, in one line.
        when: types of operators, without one of which it changes nothing; empty: it may always matter.
        opset: the oldest that has all operators which it makes.
    """

    name: str
    kind: Kind
    what: str
    when: tuple[str, ...] = ()
    opset: int = 1

    @property
    def is_rewriting(self) -> bool:
        """Whether it makes another model of a model; the others work inside ONNX Runtime."""
        return self.kind in REWRITING

    @property
    def is_intended(self) -> bool:
        """Whether it changes results, and is off unless a user asks for it."""
        return self.kind == "intent"

    def may_matter(self, operators: frozenset[str]) -> bool:
        """Whether it may change a model of operators of these types."""
        return not self.when or not operators.isdisjoint(self.when)


@cache
def passes() -> Mapping[str, GraphPass]:
    """Give the catalogue: name to pass, in a fixed order."""
    return {row["name"]: GraphPass(**row | {"when": tuple(row["when"])}) for row in _data()["passes"]}


@cache
def passes_of_kind(*kinds: Kind) -> tuple[GraphPass, ...]:
    """List the passes of some kinds, in the catalogue's order."""
    return tuple(each for each in passes().values() if each.kind in kinds)


@cache
def exclusions() -> Mapping[str, str]:
    """Give the passes that are kept out: name to reason."""
    return _data()["excluded"]


def find_pass(name: str) -> GraphPass:
    """Look a pass up.

    Raises:
        ProgramError: it is unknown, or kept out; with the reason.
    """
    found = passes().get(name)
    if found is not None:
        return found
    if name in exclusions():
        raise ProgramError(f"pass '{name}' is kept out", f"Reason: {exclusions()[name]}.")
    raise ProgramError(f"unknown pass '{name}'", did_you_mean(name, passes()))


def _data() -> dict[str, Any]:
    return json.loads((files("planish.graph.passes") / "catalogue.json").read_text(encoding="utf-8"))
