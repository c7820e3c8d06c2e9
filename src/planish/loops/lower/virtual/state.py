"""Where in a tree a decision is made, and what is held there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from planish.loops.ir.annotated import Inside
from planish.loops.ir.cells import Positions
from planish.loops.ir.extent import within
from planish.loops.ir.tree import Loop, LoopId, Node, Ref, leaves
from planish.loops.lower.virtual.scope import Scope


class Held(NamedTuple):
    """What registers hold here, and where that is in memory, by buffer."""

    scope: Scope
    homes: Mapping[str, Ref]


class State(NamedTuple):
    """Where in the tree a decision is made.

    Args:
        inside: what remains of the axes.
        at: positions of the enclosing loops; in a counted one, those of its first iteration.
        counted: the enclosing loops that move at run time.
        held: what registers hold.
        unrolling: whether a loop around moves what is held, so that all inside it is unrolled.
    """

    inside: Inside
    at: Positions
    counted: tuple[LoopId, ...] = ()
    held: Held | None = None
    unrolling: bool = False

    def within(self, loop: Loop, rest: int, at: int) -> State:
        """Give the state in an iteration of a loop."""
        inside = within(self.inside, loop.axis, rest)
        return self._replace(inside=inside, at={**self.at, loop.id: at})


def homes_of(scope: Scope, nodes: tuple[Node, ...], counted: Sequence[LoopId]) -> Mapping[str, Ref] | None:
    """Find a reference of each held buffer; None if the loops of run time move its references apart."""
    homes: dict[str, Ref] = {}
    for leaf in leaves(nodes):
        for ref in leaf.refs:
            if ref.buffer in scope.held:
                home = homes.setdefault(ref.buffer, ref)
                if [home.stride.get(loop, 0) for loop in counted] != [
                    ref.stride.get(loop, 0) for loop in counted
                ]:
                    return None
    return homes
