"""Which elements registers hold, and during which part of a tree.

The largest part whose reduced elements fit the registers is found from the top (thesis 3.4.2). Inside it,
loops that move those elements are unrolled, so that each vector of them has a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planish.loops.ir.cells import Cell, Piece, Positions, cell, position, summed
from planish.loops.ir.extent import Remaining, iterations, remaining, within
from planish.loops.ir.tree import Leaf, Loop, Node, leaves, refs
from planish.loops.lower.virtual.vector_analysis import VectorAnalysis

UNROLLED_MOST = 512
"""Vector operations that a part which must be unrolled may come to."""


@dataclass(frozen=True)
class Scope:
    """Nodes during which registers hold some buffers' elements.

    Args:
        held: those buffers.
        parts: accumulators for each element that is reduced lane by lane; a power of 2.
    """

    held: frozenset[str]
    parts: int = 1


class Scopes:
    """Plans the scopes of one tree.

    Args:
        analysis: of the tree.
        budget: how many registers may hold cells.
    """

    def __init__(self, analysis: VectorAnalysis, budget: int) -> None:
        self.analysis = analysis
        self.budget = budget

    def find(self, nodes: tuple[Node, ...], inside: Remaining, at: Positions, depth: int) -> Scope | None:
        """Plan to hold what nodes reduce, and if possible what passes between them, in registers.

        Returns:
            None where it does not fit, or where it is better decided further inside.
        """
        shared, reduced = self._candidates(nodes, inside, depth)
        for held in dict.fromkeys((shared, reduced)):
            moved = len(nodes) == 1 and self.analysis.moves(nodes[0], held)
            if held and not moved and self._small(nodes, inside, depth, held):
                scope = self._fitting(nodes, inside, at, depth, held)
                if scope:
                    return scope
        return None

    def _candidates(
        self, nodes: tuple[Node, ...], inside: Remaining, depth: int
    ) -> tuple[frozenset[str], frozenset[str]]:
        """The buffers that are reduced or read after being written, and those that are reduced."""
        private: set[str] = set()
        for node in nodes:
            private |= self._lane_privates(node, inside, depth)
        found = list(leaves(nodes))
        written = {x.target.buffer for x in found} - private
        read = {r.buffer for x in found for r in refs(x.value)}
        reduced = {x.target.buffer for x in found if x.reduce} - private
        return frozenset(written & (read | reduced)), frozenset(reduced)

    def _lane_privates(self, node: Node, inside: Remaining, depth: int) -> set[str]:
        if isinstance(node, Leaf):
            return set()
        if self.analysis.vectorised(node, inside, depth):
            names = {leaf.target.buffer for leaf in leaves(node.body)}
            return {n for n in names if self.analysis.lane_private(n, depth + 1)}
        step = min(node.step, remaining(self.analysis.tree, inside, node.axis))
        inner = within(inside, node.axis, step)
        return set().union(*(self._lane_privates(n, inner, depth + 1) for n in node.body))

    def _small(self, nodes: tuple[Node, ...], inside: Remaining, depth: int, held: frozenset[str]) -> bool:
        """Whether the loops that move what is held may be unrolled, with all that is inside them."""
        for node in nodes:
            if isinstance(node, Leaf):
                continue
            if self.analysis.moves(node, held):
                if self.analysis.volume((node,), inside, depth) > UNROLLED_MOST:
                    return False
            elif not self.analysis.vectorised(node, inside, depth):
                step = min(node.step, remaining(self.analysis.tree, inside, node.axis))
                if not self._small(node.body, within(inside, node.axis, step), depth + 1, held):
                    return False
        return True

    def _fitting(
        self, nodes: tuple[Node, ...], inside: Remaining, at: Positions, depth: int, held: frozenset[str]
    ) -> Scope | None:
        found: dict[Cell, None] = {}
        for touched in self.cells(nodes, inside, at, depth, Scope(held)):
            found[touched] = None
            if len(found) > self.budget:
                return None
        # An element in two registers would be old in one of them.
        if _overlap(found):
            return None
        partial = sum(bool(c.reduce) for c in found)
        return Scope(held, self._parts(partial, len(found)))

    def _parts(self, partial: int, cells: int) -> int:
        """Accumulators for each of `partial` elements, enough to hide the latency of an addition."""
        parts = 1
        # Eight in flight: an addition takes some four cycles, and two begin in each.
        while partial and partial * parts < 8 and cells + partial * (2 * parts - 1) <= self.budget:
            parts *= 2
        return parts

    def cells(
        self, nodes: tuple[Node, ...], inside: Remaining, at: Positions, depth: int, scope: Scope
    ) -> Iterator[Cell]:
        """List the cells that nodes touch, some several times.

        Args:
            nodes: what is executed.
            inside: what remains there.
            at: positions of the enclosing loops; those that only move at run time are absent.
            depth: how many loops enclose the nodes.
            scope: what is held.
        """
        for node in nodes:
            if isinstance(node, Leaf):
                for ref in (node.target, *refs(node.value)):
                    if ref.buffer in scope.held:
                        yield Cell(ref.buffer, position(ref, at))
            elif self.analysis.vectorised(node, inside, depth):
                yield from self._vector_cells(node, inside, at, depth + 1, scope)
            else:
                full, tail = iterations(self.analysis.tree, inside, node)
                moved = self.analysis.moves(node, scope.held)
                # Other loops touch the same cells in every iteration.
                for i in range(full if moved else min(full, 1)):
                    inner = within(inside, node.axis, node.step)
                    yield from self.cells(node.body, inner, {**at, node.id: i}, depth + 1, scope)
                if tail:
                    inner = within(inside, node.axis, tail)
                    yield from self.cells(node.body, inner, {**at, node.id: full}, depth + 1, scope)

    def _vector_cells(
        self, loop: Loop, inside: Remaining, at: Positions, depth: int, scope: Scope
    ) -> Iterator[Cell]:
        body = tuple(leaves(loop.body))
        whole = any(self.analysis.partial(leaf, loop, depth) for leaf in body)
        lanes, full, tail = self.analysis.pieces(self.analysis.trip(loop, inside), whole)
        count = full if self.analysis.moves(loop, scope.held) else min(full, scope.parts)
        for i, piece in enumerate([*(Piece(j * lanes, lanes, lanes) for j in range(count)), *tail]):
            here = {**at, loop.id: piece.start}
            for leaf in body:
                if leaf.target.buffer in scope.held:
                    if self.analysis.partial(leaf, loop, depth):
                        yield summed(leaf, here, piece, i % scope.parts)
                    else:
                        yield cell(leaf.target, here, loop, piece)
                for ref in refs(leaf.value):
                    if ref.buffer in scope.held:
                        yield cell(ref, here, loop, piece)


def _overlap(cells: Mapping[Cell, None]) -> bool:
    """Whether two cells share an element."""
    seen: set[tuple[str, int]] = set()
    total = 0
    for c in cells:
        elements = range(c.offset, c.offset + c.active * c.stride, c.stride) if c.stride else (c.offset,)
        seen.update((c.buffer, e) for e in elements)
        total += len(elements)
    return len(seen) != total
