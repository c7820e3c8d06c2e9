"""Kinds of loops: how their iterations are executed. Back ends of other packages add their own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoopKind:
    """A kind of loop.

    Args:
        name: as in `planish.loops.ir.tree.Loop.kind`.
        concurrent: whether iterations may run at the same time: then none may touch what another writes.
    """

    name: str
    concurrent: bool = False


SERIAL = LoopKind("serial")
UNROLL = LoopKind("unroll")
PARALLEL = LoopKind("parallel", concurrent=True)

OWN = {kind.name: kind for kind in (SERIAL, UNROLL, PARALLEL)}
"""What every back end executes: in order, by repeating the body if that pays, and by threads."""
KINDS = dict(OWN)
"""Name to kind, of all that are known."""


def add_kind(kind: LoopKind) -> LoopKind:
    """Make a kind known, such as a GPU's blocks; to do it again changes nothing.

    Raises:
        ValueError: another kind has this name.
    """
    if KINDS.setdefault(kind.name, kind) != kind:
        raise ValueError(f"there is another kind of loop '{kind.name}'")
    return kind
