"""What an annotated tree says of each loop: how it is executed, and what registers hold meanwhile."""

from __future__ import annotations

from typing import NamedTuple

from planish.loops.ir.annotated import AnnotatedTree, Block, CellRegion, Item, Lanes, Nest, Region, Unrolled
from planish.loops.ir.tree import Loop, loops

_NOTHING: frozenset[str] = frozenset()


class Decision(NamedTuple):
    """How a loop is executed, in its first part: the others are its tails.

    Args:
        kind: "counted", "unrolled" or "parallel".
        lanes: of the vectors that its iterations are; 1 where they are executed in turn.
        copies: of its body in the code.
        held: the buffers whose elements registers hold while it runs.
    """

    kind: str
    lanes: int
    copies: int
    held: frozenset[str]


class Decisions:
    """The decisions about the loops of an annotated tree's body."""

    def __init__(self, annotated: AnnotatedTree) -> None:
        self._lanes = annotated.vectors.lanes
        self._found: dict[int, Decision] = {}
        for function in annotated.body:
            self._item(function.item, _NOTHING)

    def of(self, loop: Loop) -> Decision | None:
        """Give what is decided about a loop; None where no code is made for it."""
        return self._found.get(id(loop))

    def _item(self, item: Item, held: frozenset[str]) -> None:
        match item:
            case Unrolled(node=node):
                for loop in loops((node,)):
                    lanes = self._lanes if loop.side_by_side else 1
                    self._note(loop, Decision("unrolled", lanes, 0, held))
            case Nest():
                self._nest(item, held)
            case Block(items=items):
                for inner in items:
                    self._item(inner, held)
            case Region(items=items):
                for inner in items:
                    self._item(inner, held | item.registers.keys())
            case CellRegion():
                self._item(item.item, held | item.held)
            case Lanes():
                pass

    def _nest(self, nest: Nest, held: frozenset[str]) -> None:
        for part in nest.parts:
            copies = part.copies if part.kind == "counted" else 0
            self._note(nest.loop, Decision(part.kind, part.lanes, copies, held))
            self._item(part.body, held)

    def _note(self, loop: Loop, decision: Decision) -> None:
        """Keep the first decision about a loop; the strips of a loop have its vectors inside."""
        known = self._found.get(id(loop))
        if known is None:
            self._found[id(loop)] = decision
        elif decision.lanes > known.lanes:
            self._found[id(loop)] = known._replace(lanes=decision.lanes)
