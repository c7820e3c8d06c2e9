"""What is decided before code is written: vector pieces, what is unrolled, and what registers hold.

The largest part of a tree whose reduced elements fit the registers is found from the top (thesis 3.4.2):
inside it, loops that move those elements are unrolled, so that each has a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from planish.loops.extent import Remaining, iterations, remaining, within
from planish.loops.mathlib import EXPANDED, expansion
from planish.loops.portable.machine import Machine
from planish.loops.program import DTYPES
from planish.loops.tree import Call, Leaf, Loop, LoopId, LoopTree, Node, Ref, Value, leaves, refs

UNROLLED_MOST = 512
"""Vector operations that a part which must be unrolled may come to."""

Positions = Mapping[LoopId, int]
"""Loop to its iteration number, as far as it is known when code is written."""


class Piece(NamedTuple):
    """Some consecutive iterations of an innermost loop, as one vector; one lane may stand for a single leaf.

    Args:
        start: the first iteration.
        lanes: of the vector, a power of 2.
        active: how many of them count.
    """

    start: int
    lanes: int
    active: int


class Cell(NamedTuple):
    """One vector or scalar of memory that a register holds.

    Args:
        buffer: where it is.
        offset: of its first element, from the buffer's pointer.
        stride: elements between lanes; 0 for a scalar.
        lanes: of the vector.
        active: lanes that count.
        reduce: set if the lanes are parts of the one element at the offset, reduced so at the end.
        part: number of the accumulator, where several serve one element.
    """

    buffer: str
    offset: int
    stride: int = 0
    lanes: int = 1
    active: int = 1
    reduce: str = ""
    part: int = 0


@dataclass(frozen=True)
class Scope:
    """Nodes during which registers hold some buffers' elements.

    Args:
        held: those buffers.
        parts: accumulators for each element that is reduced lane by lane; a power of 2.
    """

    held: frozenset[str]
    parts: int = 1


class Plan:
    """Answers questions about one tree for one machine."""

    def __init__(self, tree: LoopTree, machine: Machine, dtype: str) -> None:
        self.tree = tree
        self.lanes = machine.lanes(DTYPES[dtype])
        self.masks = machine.masks
        self.budget = machine.registers - 4
        self.dtype = dtype
        self._kept: dict[object, bool | int] = {}

    def vectorised(self, node: Node, inside: Remaining, depth: int) -> bool:
        """Whether a loop is executed in vectors: an innermost loop whose iterations do not depend on another.

        Args:
            node: a loop, or a leaf, which is none.
            inside: what remains outside it.
            depth: how many loops enclose it.
        """
        if isinstance(node, Leaf) or any(isinstance(n, Loop) for n in node.body):
            return False
        trip = self.trip(node, inside)
        key = ("vector", id(node), trip)
        if key not in self._kept:
            self._kept[key] = trip > 1 and self._independent(node, trip, depth + 1)
        return bool(self._kept[key])

    def trip(self, loop: Loop, inside: Remaining) -> int:
        """Count a loop's iterations, the tail included."""
        full, tail = iterations(self.tree, inside, loop)
        return full + (tail > 0)

    def _independent(self, loop: Loop, trip: int, depth: int) -> bool:
        body = tuple(leaves(loop.body))
        for leaf in body:
            target = leaf.target
            if self.lane_private(target.buffer, depth):
                continue
            others = [r for x in body for r in (x.target, *refs(x.value)) if r.buffer == target.buffer]
            if loop.id not in target.stride:
                if leaf.reduce is None or len(others) > 1:
                    return False
            elif not all(_apart(target, other, loop.id, trip) for other in others):
                return False
        return True

    def lane_private(self, buffer: str, depth: int) -> bool:
        """Whether a temporary lives within one iteration of the vectorised loop at a depth."""
        found = self.tree.buffer[buffer]
        return found.kind == "temporary" and found.scope == depth

    def partial(self, leaf: Leaf, loop: Loop, depth: int) -> bool:
        """Whether a leaf of a vectorised loop reduces along it; `depth` counts that loop too."""
        target = leaf.target
        return loop.id not in target.stride and not self.lane_private(target.buffer, depth)

    def pieces(self, trip: int, whole: bool) -> tuple[int, int, list[Piece]]:
        """Cut an innermost loop into vectors.

        Args:
            trip: its iterations.
            whole: whether all vectors must have the same number of lanes.

        Returns:
            Lanes of the full vectors, how many full vectors there are, and what follows them.
        """
        lanes = min(self.lanes, _power(trip)) if whole else self.lanes
        full, rest = divmod(trip, lanes)
        start = full * lanes
        if not rest:
            return lanes, full, []
        if whole or self.masks:
            return lanes, full, [Piece(start, lanes if whole else _power(rest), rest)]
        tail: list[Piece] = []
        while rest:
            part = _power(rest + 1) // 2
            tail.append(Piece(start, part, part))
            start, rest = start + part, rest - part
        return lanes, full, tail

    def volume(self, nodes: tuple[Node, ...], inside: Remaining, depth: int) -> int:
        """Count the vector operations of nodes when all is unrolled."""
        key = ("volume", tuple(map(id, nodes)), tuple(inside.items()))
        if key not in self._kept:
            self._kept[key] = sum(self._volume(node, inside, depth) for node in nodes)
        return int(self._kept[key])

    def _volume(self, node: Node, inside: Remaining, depth: int) -> int:
        if isinstance(node, Leaf):
            return self.weight(node)
        if self.vectorised(node, inside, depth):
            _, full, tail = self.pieces(self.trip(node, inside), whole=False)
            return (full + len(tail)) * sum(map(self.weight, leaves(node.body)))
        full, tail = iterations(self.tree, inside, node)
        total = full * self.volume(node.body, within(inside, node.axis, node.step), depth + 1) if full else 0
        return total + (self.volume(node.body, within(inside, node.axis, tail), depth + 1) if tail else 0)

    def weight(self, leaf: Leaf) -> int:
        """Count a leaf's operations; a product that is added counts as one."""
        key = ("weight", id(leaf))
        if key not in self._kept:
            self._kept[key] = max(1, self._operations(leaf.value))
        return int(self._kept[key])

    def _operations(self, value: Value) -> int:
        if not isinstance(value, Call):
            return 0
        own = len(expansion(value.function, self.dtype)) if value.function in EXPANDED else 1
        return own + sum(map(self._operations, value.args))

    def moves(self, node: Node, held: frozenset[str]) -> bool:
        """Whether a loop moves some reference to these buffers."""
        if isinstance(node, Leaf):
            return False
        key = ("moves", id(node), held)
        if key not in self._kept:
            found = (r for leaf in leaves(node.body) for r in (leaf.target, *refs(leaf.value)))
            self._kept[key] = any(r.buffer in held and node.id in r.stride for r in found)
        return bool(self._kept[key])

    def scope(self, nodes: tuple[Node, ...], inside: Remaining, at: Positions, depth: int) -> Scope | None:
        """Plan to hold what nodes reduce, and if possible what passes between them, in registers.

        Returns:
            None where it does not fit, or where it is better decided further inside.
        """
        shared, reduced = self._candidates(nodes, inside, depth)
        for held in dict.fromkeys((shared, reduced)):
            moved = len(nodes) == 1 and self.moves(nodes[0], held)
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
        if self.vectorised(node, inside, depth):
            names = {leaf.target.buffer for leaf in leaves(node.body)}
            return {n for n in names if self.lane_private(n, depth + 1)}
        step = min(node.step, remaining(self.tree, inside, node.axis))
        inner = within(inside, node.axis, step)
        return set().union(*(self._lane_privates(n, inner, depth + 1) for n in node.body))

    def _small(self, nodes: tuple[Node, ...], inside: Remaining, depth: int, held: frozenset[str]) -> bool:
        """Whether the loops that move what is held may be unrolled, with all that is inside them."""
        for node in nodes:
            if isinstance(node, Leaf):
                continue
            if self.moves(node, held):
                if self.volume((node,), inside, depth) > UNROLLED_MOST:
                    return False
            elif not self.vectorised(node, inside, depth):
                step = min(node.step, remaining(self.tree, inside, node.axis))
                if not self._small(node.body, within(inside, node.axis, step), depth + 1, held):
                    return False
        return True

    def _fitting(
        self, nodes: tuple[Node, ...], inside: Remaining, at: Positions, depth: int, held: frozenset[str]
    ) -> Scope | None:
        found: dict[Cell, None] = {}
        for cell in self.cells(nodes, inside, at, depth, Scope(held)):
            found[cell] = None
            if len(found) > self.budget:
                return None
        if _overlap(found):
            return None
        partial = sum(bool(cell.reduce) for cell in found)
        return Scope(held, self._parts(partial, len(found)))

    def _parts(self, partial: int, cells: int) -> int:
        """Accumulators for each of `partial` elements, enough to hide the latency of an addition."""
        parts = 1
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
            elif self.vectorised(node, inside, depth):
                yield from self._vector_cells(node, inside, at, depth + 1, scope)
            else:
                full, tail = iterations(self.tree, inside, node)
                moved = self.moves(node, scope.held)
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
        whole = any(self.partial(leaf, loop, depth) for leaf in body)
        lanes, full, tail = self.pieces(self.trip(loop, inside), whole)
        count = full if self.moves(loop, scope.held) else min(full, scope.parts)
        for i, piece in enumerate([*(Piece(j * lanes, lanes, lanes) for j in range(count)), *tail]):
            here = {**at, loop.id: piece.start}
            for leaf in body:
                if leaf.target.buffer in scope.held:
                    partial = self.partial(leaf, loop, depth)
                    yield self.target_cell(leaf, here, loop, piece, i % scope.parts if partial else -1)
                for ref in refs(leaf.value):
                    if ref.buffer in scope.held:
                        yield cell(ref, here, loop, piece)

    def target_cell(self, leaf: Leaf, at: Positions, loop: Loop | None, piece: Piece, part: int) -> Cell:
        """Name what a leaf's target is held as; `part` is -1 if it is not reduced along the loop."""
        if part < 0:
            return cell(leaf.target, at, loop, piece)
        offset = position(leaf.target, at)
        return Cell(leaf.target.buffer, offset, 0, piece.lanes, piece.lanes, leaf.reduce or "", part)


def position(ref: Ref, at: Positions) -> int:
    """Sum what is known of a reference's offset."""
    return ref.offset + sum(stride * at[loop] for loop, stride in ref.strides if loop in at)


def cell(ref: Ref, at: Positions, loop: Loop | None, piece: Piece) -> Cell:
    """Name what a reference is held as in a piece of a vectorised loop; None for no such loop."""
    stride = ref.stride.get(loop.id, 0) if loop and piece.lanes > 1 else 0
    if stride == 0:
        return Cell(ref.buffer, position(ref, at))
    return Cell(ref.buffer, position(ref, at), stride, piece.lanes, piece.active)


def _power(n: int) -> int:
    """The least power of 2 that is not less."""
    return 1 << (n - 1).bit_length()


def _apart(a: Ref, b: Ref, loop: LoopId, trip: int) -> bool:
    """Whether two references meet only in the same iteration of a loop; both move along it or not."""
    if a.stride != b.stride:
        return False
    distance, stride = abs(a.offset - b.offset), a.stride[loop]
    return distance == 0 or distance % stride != 0 or distance // stride >= trip


def _overlap(cells: Mapping[Cell, None]) -> bool:
    """Whether two cells share an element."""
    seen: set[tuple[str, int]] = set()
    total = 0
    for c in cells:
        elements = range(c.offset, c.offset + c.active * c.stride, c.stride) if c.stride else (c.offset,)
        seen.update((c.buffer, e) for e in elements)
        total += len(elements)
    return len(seen) != total
