"""Lower a schedule to the loop tree that code generators take."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from planish.loops.graph import Arithmetic, Nest, plain_axis
from planish.loops.layout import Location, row_major, tile
from planish.loops.placement import Annotation, Place, Placement, Start, place
from planish.loops.program import IDENTITY, Const
from planish.loops.schedule import Order, Schedule
from planish.loops.tree import Buffer, Call, Leaf, Loop, LoopId, LoopTree, Node, Value


def lower(schedule: Schedule) -> LoopTree:
    """Lower a schedule; see `planish.loops.placement` for how nests share loops.

    Returns:
        The tree. An intermediate tensor's buffer holds only what is computed and used inside the loops
        that its writers and readers share; where they share all, it is no buffer but part of an expression.
    """
    return _Lowering(schedule).tree()


class _Lowering:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.graph = schedule.graph
        self.program = schedule.program
        parallel = frozenset(loop for _, loop in schedule.parallel)
        self.placement = place(_annotate(schedule), parallel)
        self.kinds = _kinds(schedule, self.placement)
        self.buffers: list[Buffer] = []
        self.locations: dict[str, Location] = {}
        self.inlined: set[str] = set()

    def tree(self) -> LoopTree:
        program = self.program
        for tensor in program.inputs:
            self._caller_buffer(tensor, "input")
        for tensor in program.outputs:
            self._caller_buffer(tensor, "output")
        for tensor in program.written:
            if tensor not in self.locations:
                self._temporary(tensor)
        body = self._body(self.placement.root, ())
        return LoopTree(body, (), tuple(self.buffers), program.sizes)

    def _caller_buffer(self, tensor: str, kind: Literal["input", "output"]) -> None:
        type_ = self.program.type[tensor]
        self.buffers.append(Buffer(tensor, type_.dtype, type_.size, kind))
        self.locations[tensor] = Location(tensor, type_.strides())

    def _temporary(self, tensor: str) -> None:
        writers = [self.graph.nests[i] for i in self.graph.writers[tensor]]
        readers = [n for n in self.graph.nests if any(o.access.tensor == tensor for o in n.operands)]
        shared = self.placement.shared
        depth = min(shared(w.name, r.name) for w in writers for r in readers)
        if len(writers) == 1 and self._same_body(writers[0], readers, depth):
            self.inlined.add(writers[0].name)
            return
        self._tile(tensor, writers, readers, depth)

    def _same_body(self, writer: Nest, readers: Sequence[Nest], depth: int) -> bool:
        path = self.placement.path
        whole = all(len(path[n.name]) == depth for n in (writer, *readers))
        return whole and writer.name not in self.placement.start

    def _tile(self, tensor: str, writers: Sequence[Nest], readers: Sequence[Nest], depth: int) -> None:
        type_ = self.program.type[tensor]
        indices = [n.statement.target.index for n in writers]
        indices += [o.access.index for n in readers for o in n.operands if o.access.tensor == tensor]
        order = _order(self.placement.path[writers[0].name])
        relative: list[bool] = []
        extents: list[int] = []
        for d, extent in enumerate(type_.shape):
            axis = plain_axis(indices[0][d])
            same = depth > 0 and axis is not None and all(index[d] == indices[0][d] for index in indices)
            relative.append(same)
            extents.append(tile(axis, order[:depth], self.program.size[axis]) if axis and same else extent)
        used = None if len(writers) > 1 else _by_innermost_loop(writers[0], order)
        self.buffers.append(Buffer(tensor, type_.dtype, prod(extents), "temporary", depth))
        strides = row_major(extents, used)
        self.locations[tensor] = Location(tensor, strides, depth, tuple(relative))

    def _body(self, around: Place, path: Order) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for item in around.items:
            if isinstance(item, Place):
                loop = item.loop
                body = self._body(item, (*path, loop))
                nodes.append(Loop(loop[0], loop[1], body, self.kinds.get(id(item), "serial")))
            elif isinstance(item, Start):
                nodes.append(self._start(self.graph.nests[self.graph.nest[item.node]], len(path)))
            elif item not in self.inlined:
                nodes.append(self._leaf(self.graph.nests[self.graph.nest[item]], path))
        return tuple(nodes)

    def _leaf(self, nest: Nest, path: Order) -> Leaf:
        target = nest.statement.target
        reduces = nest.name in self.placement.start
        node = self.graph.node[nest.name]
        assert isinstance(node, Arithmetic)
        value = self._value(node.inputs[0], path) if nest.statement.reduce else self._compute(node, path)
        ref = self.locations[target.tensor].ref(target.index, path)
        return Leaf(ref, nest.statement.reduce if reduces else None, value)

    def _start(self, nest: Nest, depth: int) -> Node:
        statement = nest.statement
        order = _order(self.placement.path[nest.name])
        inner = [loop for loop in order[depth:] if loop[0] not in nest.reduced]
        target = self.locations[statement.target.tensor].ref(statement.target.index, (*order[:depth], *inner))
        node: Node = Leaf(target, None, Const(IDENTITY[statement.reduce or "add"]))
        for axis, step in reversed(inner):
            node = Loop(axis, step, (node,))
        return node

    def _value(self, item: str | Const, path: Order) -> Value:
        if isinstance(item, Const):
            return item
        node = self.graph.node[item]
        if isinstance(node, Arithmetic):
            return self._compute(node, path)
        access = self.graph.operand[item].access
        for i in self.graph.writers.get(access.tensor, ()):
            if (writer := self.graph.nests[i].name) in self.inlined:
                return self._value(writer, path)
        return self.locations[access.tensor].ref(access.index, path)

    def _compute(self, node: Arithmetic, path: Order) -> Value:
        if node.function == "copy" or node.reduced:
            return self._value(node.inputs[0], path)
        return Call(node.function, tuple(self._value(i, path) for i in node.inputs))


def _annotate(schedule: Schedule) -> dict[str, Annotation]:
    notes: dict[str, Annotation] = {}
    nests = schedule.graph.nests
    for nest, order in zip(nests, schedule.loops, strict=True):
        needs: dict[str, frozenset[str]] = {}
        for operand in nest.operands:
            for i, axes in operand.links:
                source = nests[i].name
                needs[source] = needs[source] & axes if source in needs else axes
        tensor = nest.statement.target.tensor
        staged = frozenset(loop for name, loop in schedule.staged if name == tensor)
        notes[nest.name] = Annotation(order, needs, nest.reduced, staged)
    return notes


def _kinds(schedule: Schedule, placement: Placement) -> dict[int, Literal["unroll", "parallel"]]:
    """Give the kind of every loop that is not serial, by the identity of its place."""
    kinds: dict[int, Literal["unroll", "parallel"]] = {}
    marked = schedule.unrolled | schedule.parallel
    for i, nest in enumerate(schedule.graph.nests) if marked else ():
        source = schedule.graph.main if schedule.orders[i] is None else i
        path = placement.path[nest.name]
        kinds |= {id(p): "unroll" for p in path if (source, p.loop) in schedule.unrolled}
        kinds |= {
            id(p): "parallel" for p in path[:1] if (source, p.loop) in schedule.parallel and not p.reduces
        }
    return kinds


def _order(path: Sequence[Place]) -> tuple[LoopId, ...]:
    return tuple(p.loop for p in path)


def _by_innermost_loop(nest: Nest, order: Sequence[LoopId]) -> list[int]:
    """Order the target's dimensions as the nest's innermost loops walk them; those without loop first."""
    last = {axis: i for i, (axis, _) in enumerate(order)}
    index = nest.statement.target.index
    return sorted(range(len(index)), key=lambda d: last.get(plain_axis(index[d]) or "", -1))
