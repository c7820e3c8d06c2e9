"""Loops that write along the result are unrolled: every iteration has registers of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from planish.loops.codegen.x86.items import Items, Lanes, Make, Moves
from planish.loops.codegen.x86.pointers import Pointers
from planish.loops.ir.annotated import Inside
from planish.loops.ir.extent import remaining
from planish.loops.ir.tree import Leaf, Loop, LoopTree, Node


class Iterations(NamedTuple):
    """Iterations of one leaf in an unrolled nest: what makes their items, their lanes and their places.

    Args:
        make: makes the items.
        lanes: of each iteration.
        moves: of each of the leaf's references, by iteration.
        pointers: those of the references, by identity.
    """

    make: Make
    lanes: Lanes
    moves: Moves
    pointers: Sequence[int]

    def repeated(self, strides: Mapping[int, int], count: int) -> Iterations:
        """Give the iterations again and again, with each pointer moved on by its stride, if it has one."""
        moves = [_again(m, strides.get(p, 0), count) for m, p in zip(self.moves, self.pointers, strict=True)]
        return Iterations(self.make, [*self.lanes] * count, moves, self.pointers)


class _Prepared(NamedTuple):
    """What is known of a loop, independent of how much of its axis remains.

    Args:
        vector: whether it is executed a vector at a time.
        step: elements of an iteration.
        moved: pointers that it moves, by identity, to the bytes per iteration.
        body: loops, and for leaves with something to do their maker and pointers.
    """

    vector: bool
    step: int
    moved: dict[int, int]
    body: list[Loop | tuple[Make, list[int]]]


class Unroller:
    """Lists the items of unrolled nests, once for each state of their axes.

    Args:
        tree: the whole tree.
        pointers: which loops move.
        items: makes the items.
        lanes: of a vector register.
    """

    def __init__(self, tree: LoopTree, pointers: Pointers, items: Items, lanes: int) -> None:
        self._tree = tree
        self._pointers = pointers
        self._items = items
        self._lanes = lanes
        self._loops: dict[int, _Prepared] = {}
        self._axes: dict[int, list[str]] = {}
        self._known: dict[tuple[int, tuple[int | None, ...]], list[Iterations]] = {}

    def items(self, loop: Loop, inside: Inside) -> list[Iterations]:
        """List a nest's items in their order."""
        axes = self._axes.get(id(loop))
        if axes is None:
            axes = self._axes[id(loop)] = list(dict.fromkeys(_axes(loop, self._tree)))
        key = id(loop), tuple([inside.get(axis) for axis in axes])
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._chained(loop, inside)
            if not known:
                start = dict.fromkeys(map(id, self._pointers.live((loop,))), 0)
                self._walk(loop, inside, start, known.append)
        return known

    def _chained(self, loop: Loop, inside: Inside) -> list[Iterations]:
        """List the items of loops over different axes around one leaf: the common case, made quick."""
        chain: list[tuple[_Prepared, range]] = []
        axes: set[str] = set()
        node: Loop | tuple[Make, list[int]] = loop
        extent = 1
        while isinstance(node, Loop):
            prepared = self._prepared(node)
            if len(prepared.body) != 1 or node.axis in axes:
                # Over one axis twice, how often the inner loop runs depends on the pass of the outer one.
                return []
            axes.add(node.axis)
            extent = remaining(self._tree, inside, node.axis)
            chain.append((prepared, range(0, extent, prepared.step)))
            node = prepared.body[0]
        make, pointers = node
        last, firsts = chain[-1]
        # Only the innermost loop can be vectorised, and `extent` is still that of its axis.
        lanes = [min(last.step, extent - first) if last.vector else 1 for first in firsts]
        moves = [_moves(chain, pointer) for pointer in pointers]
        return [Iterations(make, lanes * (len(moves[0]) // len(lanes)), moves, pointers)]

    def _walk(
        self, loop: Loop, inside: Inside, places: dict[int, int], add: Callable[[Iterations], None]
    ) -> None:
        vector, step, moved, body = self._prepared(loop)
        if not body:
            return
        here = inside.get(loop.axis) or remaining(self._tree, inside, loop.axis)
        for first in range(0, here, step):
            count = min(step, here - first)
            for node in body:
                if isinstance(node, Loop):
                    self._walk(node, {**inside, loop.axis: count}, places, add)
                else:
                    make, pointers = node
                    moves = [(places[p],) for p in pointers]
                    add(Iterations(make, (count if vector else 1,), moves, pointers))
            for pointer, stride in moved.items():
                places[pointer] += stride
        # Back to where the nest began.
        for pointer, stride in moved.items():
            places[pointer] -= stride * -(-here // step)

    def _prepared(self, loop: Loop) -> _Prepared:
        known = self._loops.get(id(loop))
        if known is None:
            inner = loop if loop.side_by_side else None
            times = self._lanes if inner else 1
            moved = {id(p): stride * times for p, stride in self._pointers.moved(loop, loop.id)}
            body = [self._body(node, inner) for node in loop.body]
            step = self._lanes if inner else loop.step
            known = _Prepared(inner is not None, step, moved, [node for node in body if node])
            self._loops[id(loop)] = known
        return known

    def _body(self, node: Node, inner: Loop | None) -> Loop | tuple[Make, list[int]] | None:
        """Prepare what a loop holds; None for what has nothing to do."""
        if isinstance(node, Loop):
            return node if self._prepared(node).body else None
        make = self._items.maker(node, inner)
        return make and (make, [id(pointer) for pointer in self._pointers.of_leaf(node)])


def _moves(chain: Sequence[tuple[_Prepared, range]], pointer: int) -> list[int]:
    """How far a chain of loops moves a pointer, iteration by iteration."""
    found = [0]
    for prepared, firsts in reversed(chain):
        found = _again(found, prepared.moved.get(pointer, 0), len(firsts))
    return found


def _again(moves: Sequence[int], stride: int, count: int) -> list[int]:
    """Repeat moves, each time a stride farther."""
    if not stride:
        return [*moves] * count
    return [step + move for step in range(0, stride * count, stride) for move in moves]


def _axes(node: Node, tree: LoopTree) -> list[str]:
    """List the axes that tell how often the loops of a nest run: theirs, and those of their windows."""
    if isinstance(node, Leaf):
        return []
    window = [axis for axis, _ in tree.window.get(node.axis, ())]
    return [node.axis, *window, *(axis for below in node.body for axis in _axes(below, tree))]
