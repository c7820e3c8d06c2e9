"""Lower a schedule to the loop tree that code generators take."""

from __future__ import annotations

from functools import lru_cache

from planish.loops.ir.graph import Arithmetic, Nest
from planish.loops.ir.schedule import Order, Schedule
from planish.loops.ir.tree import Call, Leaf, Loop, LoopId, LoopTree, Node, Ref, Value
from planish.loops.lang.program import GATHER, IDENTITY, POSITIONS, Const, Index
from planish.loops.lower.buffers import Memory
from planish.loops.lower.copying import copy_nodes
from planish.loops.lower.hoist import hoisted
from planish.loops.lower.place import Place, Start


def lower(schedule: Schedule) -> LoopTree:
    """Lower a schedule; see `planish.loops.lower.place` for how nests share loops.

    Differences from the thesis (3.5.3): a reduction has an explicit start, just outside its outermost
    reduction loop; padding is a copy whose edges have loops of their own; a buffer of one element that its
    reader's body fills is no buffer, but part of the reader's expression. Costly expressions leave the loops
    that do not move them (`planish.loops.lower.hoist`).

    Returns:
        The tree. An intermediate tensor's buffer holds only what is computed and used inside the loops
        that its writers and readers share.
    """
    return hoisted(_Lowering(schedule).tree())


_view_nodes = lru_cache(maxsize=256)(copy_nodes)
"""The copies of padded inputs, which are the same for all schedules of a program."""


class _Lowering:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.graph = schedule.graph
        self.memory = Memory(schedule)
        self.plan = self.memory.plan
        self.placement = self.memory.placement
        self.sizes = dict(schedule.program.sizes)
        self.kinds = self._kinds()

    def tree(self) -> LoopTree:
        copies = self.plan.copies.items()
        ahead = self._positions() + tuple(
            node for name, copy in copies if copy.ahead for node in self._copy(name)
        )
        body = self._body(self.placement.root, ())
        derived = tuple(
            (run.loop[0], run.derived) for _, copy in copies for run in copy.packed.runs if run.derived
        )
        return LoopTree(body, ahead, self.memory.buffers, tuple(self.sizes.items()), derived, self._views())

    def _positions(self) -> tuple[Node, ...]:
        """Fill the tensor of positions: each is one more than that before it."""
        kind = self.schedule.program.type.get(POSITIONS)
        if kind is None:
            return ()
        first = Leaf(Ref(POSITIONS, 0, ()), None, Const(0.0))
        if kind.size == 1:
            return (first,)
        # One less, for the loop reads each element's forerunner: the first is written by itself.
        self.sizes[POSITIONS] = kind.size - 1
        before, here = (Ref(POSITIONS, offset, (((POSITIONS, 1), 1),)) for offset in (0, 1))
        return first, Loop(POSITIONS, 1, (Leaf(here, None, Call("add", (before, Const(1.0)))),))

    def _views(self) -> int:
        """Count the first nodes, which copy padded inputs."""
        count = 0
        for item in self.placement.root.items:
            copy = self.plan.copies.get(item) if isinstance(item, str) else None
            if copy is None or not copy.whole:
                break
            count += len(self._copy(copy.packed.name))
        return count

    def _body(self, around: Place, path: Order) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for item in around.items:
            if isinstance(item, Place):
                loop = item.loop
                body = self._body(item, (*path, loop))
                nodes.append(Loop(loop[0], loop[1], body, self.kinds.get(id(item), "serial")))
            elif isinstance(item, Start):
                nodes.append(self._start(self._nest(item.node), path))
            elif item in self.plan.copies:
                nodes += self._copy(item)
            elif item not in self.memory.inlined:
                nodes.append(self._leaf(item, path))
        return tuple(nodes)

    def _nest(self, name: str) -> Nest:
        return self.graph.nests[self.graph.nest[name]]

    def _copy(self, name: str) -> tuple[Node, ...]:
        copy = self.plan.copies[name]
        make = _view_nodes if copy.whole else copy_nodes
        nodes, sizes = make(copy.packed, self.memory.locations[copy.source])
        self.sizes.update(sizes)
        return nodes

    def _leaf(self, name: str, path: Order) -> Leaf:
        if name not in self.graph.nest:
            return self._write(name, path)
        nest, node = self._nest(name), self.graph.node[name]
        assert isinstance(node, Arithmetic)
        # Where nothing was started there is no loop to reduce over: the only term is the result.
        reduce = nest.statement.reduce if name in self.placement.start else None
        target = self.memory.target(nest).ref(nest.statement.target.index, path)
        return Leaf(target, reduce, self._compute(node, path))

    def _write(self, name: str, path: Order) -> Leaf:
        nest = next(n for n in self.graph.nests if self.plan.writes.get(n.name) == name)
        target = nest.statement.target
        value = self._result(nest, path)
        return Leaf(self.memory.locations[target.tensor].ref(target.index, path), None, value)

    def _result(self, nest: Nest, path: Order) -> Value:
        """Read what a nest computed, in its own axes."""
        if nest.name not in self.memory.inlined:
            return self.memory.target(nest).ref(nest.statement.target.index, path)
        node = self.graph.node[nest.name]
        assert isinstance(node, Arithmetic)
        return self._compute(node, path)

    def _start(self, nest: Nest, path: Order) -> Node:
        statement = nest.statement
        order = self.schedule.loops[self.graph.nest[nest.name]]
        # A start writes each result once, so it walks none of what is reduced.
        inner = [loop for loop in order[len(path) :] if loop[0] not in nest.reduced]
        index = statement.target.index
        if nest.scattered:
            index, inner = self._filled(nest, inner)
        target = self.memory.target(nest).ref(index, (*path, *inner))
        node: Node = Leaf(target, None, Const(IDENTITY[statement.reduce or "add"]))
        for axis, step in reversed(inner):
            node = Loop(axis, step, (node,))
        return node

    def _filled(self, nest: Nest, inner: list[LoopId]) -> tuple[tuple[Index, ...], list[LoopId]]:
        """Walk scattered dimensions by axes of their own, and all dimensions as they lie in memory."""
        index, loops = list(nest.statement.target.index), list[LoopId]()
        shape = self.schedule.program.type[nest.statement.target.tensor].shape
        for d, extent in enumerate(shape):
            if d not in nest.scattered:
                loops += [loop for axis, _ in index[d].terms for loop in inner if loop[0] == axis]
                continue
            axis = f"{nest.name}.{d}.filled"
            index[d] = Index(((axis, 1),) if extent > 1 else ())
            if extent > 1:
                self.sizes[axis] = extent
                loops.append((axis, 1))
        return tuple(index), loops

    def _value(self, item: str | Const, path: Order) -> Value:
        if isinstance(item, Const):
            return item
        node = self.graph.node[item]
        if isinstance(node, Arithmetic):
            return self._compute(node, path)
        access = self.graph.operand[item].access
        if item in self.plan.reads:
            return self.memory.use(self.plan.reads[item], access, path)
        for i in self.graph.writers.get(access.tensor, ()):
            if (writer := self.graph.nests[i]).name in self.memory.inlined:
                return self._result(writer, path)
        return self.memory.locations[access.tensor].ref(access.index, path)

    def _compute(self, node: Arithmetic, path: Order) -> Value:
        # A reduction's function is the leaf's to apply, to the only input.
        if node.function == "copy" or (node.function in IDENTITY and len(node.inputs) == 1):
            return self._value(node.inputs[0], path)
        args = tuple(self._value(i, path) for i in node.inputs)
        return self._gather(node, args) if node.function.startswith(GATHER) else Call(node.function, args)

    def _gather(self, node: Arithmetic, args: tuple[Value, ...]) -> Value:
        type_ = self.schedule.program.type[self.graph.operand[str(node.inputs[0])].access.tensor]
        dimension = int(node.function.removeprefix(GATHER))
        numbers = type_.strides()[dimension], type_.shape[dimension]
        return Call(GATHER, (*args, *(Const(float(n)) for n in numbers)))

    def _kinds(self) -> dict[int, str]:
        """Give the kind of every loop that is not serial, by the identity of its place."""
        schedule = self.schedule
        kinds: dict[int, str] = {}
        marked = schedule.unrolled or schedule.parallel
        for i, nest in enumerate(self.graph.nests) if marked else ():
            source = self.graph.main if schedule.orders[i] is None else i
            # By where the nest was placed: a loop that several nests share is one place, marked for all.
            path = self.placement.path[nest.name]
            kinds |= {id(p): "unroll" for p in path if (source, p.loop) in schedule.unrolled}
            # Threads that reduce into one element would race.
            if path and (source, path[0].loop) in schedule.parallel and not path[0].reduces:
                kinds[id(path[0])] = "parallel"
        return kinds
