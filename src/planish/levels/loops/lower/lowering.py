"""Lowering of a schedule to the loop tree that code generators take.

It finds which buffers a placed program needs and how small each can be (thesis 3.5.3), and hoists costly
expressions out of the loops that do not move them::

    for r:                                  for r:
      for c:                                  T[0] = sqrt(V[r])
        Y[r, c] = X[r, c] / sqrt(V[r])        for c:
                                                Y[r, c] = X[r, c] / T[0]

Where a loop inside does move the expression, it is computed by a loop of its own, into as many elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import Literal, NamedTuple

from planish.levels.loops.ir.schedule import Graph, Nest, Operand, Order, Schedule, loop_text, plain_axis
from planish.levels.loops.ir.tree import (
    TO_FLOAT,
    Buffer,
    Call,
    Leaf,
    Loop,
    LoopId,
    LoopTree,
    Node,
    Ref,
    Value,
    leaves,
    refs,
)
from planish.levels.loops.lang.program import (
    ARITHMETIC,
    COPIED,
    GATHER,
    IDENTITY,
    POSITIONS,
    QINT32,
    Access,
    Apply,
    Const,
    Expr,
    Index,
)
from planish.levels.loops.lower.mathlib import EXPANDED
from planish.levels.loops.lower.packing import Location, copy_nodes, row_major, tile
from planish.levels.loops.lower.placement import Copy, Scope, Start, place, plan

# Buffers

_KINDS = {"input": 0, "output": 1, "ahead": 2, "temporary": 3}


class _Reader(NamedTuple):
    node: str
    subscripts: tuple[Index, ...]


MOST_NARROW_READS = 16
"""Reads of an element in a call up to which copies made ahead stay in a narrow type.

They come from memory in half the time, but each read has to widen them. With AVX-512, products of 1 to 16
rows were 1.4 to 1.8 times as fast with them, and those of 32 rows 0.84 to 1.08 times.
"""


class Memory:
    """A schedule placed: its buffers, and where each tensor, tile and copy lies."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.graph = schedule.graph
        self.plan = plan(schedule)
        self.placement = place(self.plan.nodes, frozenset(loop for _, loop in schedule.parallel))
        self.inlined: set[str] = set()
        self.locations: dict[str, Location] = {}
        """Tensor, or buffer of a tile or a whole view, to where it lies."""
        self._found: list[Buffer] = []
        for buffer, location in _caller_memory(self.graph):
            self._found.append(buffer)
            self.locations[buffer.name] = location
        if kind := schedule.program.type.get(POSITIONS):
            self._found.append(Buffer(POSITIONS, kind.dtype, kind.size, "ahead"))
            self.locations[POSITIONS] = Location(POSITIONS, (1,))
        for name, copy in self.plan.copies.items():
            self._copy(name, copy)
        for tensor, writers in self.graph.writers.items():
            if tensor not in self.locations:
                readers = [
                    _Reader(self._reader(operand, nest), operand.access.index)
                    for nest in self.graph.nests
                    for operand in nest.operands
                    if operand.access.tensor == tensor
                ]
                self._tile(tensor, [self.graph.nests[i] for i in writers], readers)
        for name, write in self.plan.writes.items():
            nest = self.graph.nests[self.graph.nest[name]]
            self._tile(f"{name}.tile", [nest], [_Reader(write, nest.statement.target.index)])

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """All buffers, in the order of the calling convention."""
        return tuple(sorted(self._found, key=lambda buffer: _KINDS[buffer.kind]))

    def target(self, nest: Nest) -> Location:
        """Find where a nest puts its results."""
        tiled = nest.name in self.plan.writes
        return self.locations[f"{nest.name}.tile" if tiled else nest.statement.target.tensor]

    def use(self, copy: str, access: Access, path: Order) -> Ref:
        """Read an element of a copy."""
        if copy in self.locations:
            return self.locations[copy].ref(access.index, path)
        return self.plan.copies[copy].packed.use(path)

    def _copy(self, name: str, copy: Copy) -> None:
        packed = copy.packed
        dtype = self._dtype(packed.access.tensor)
        kind = "ahead" if copy.ahead else "temporary"
        stays = copy.ahead and self._reads(name) <= MOST_NARROW_READS * packed.size
        held = dtype if stays or dtype == QINT32 else COPIED[dtype]
        self._found.append(Buffer(name, held, packed.size, kind, len(packed.around)))
        if copy.whole:
            # A whole view begins where its window does, which may be before the tensor: subscripts count from
            # there.
            origin = tuple(index.offset for index in packed.access.index)
            self.locations[name] = Location(name, packed.strides, origin=origin)

    def _dtype(self, tensor: str) -> str:
        program = self.schedule.program
        return QINT32 if tensor in program.quad_sums else program.type[tensor].dtype

    def _reads(self, name: str) -> int:
        """Return how many elements a call reads from a copy."""
        size = self.schedule.program.size
        operands = {operand for operand, copy in self.plan.reads.items() if copy == name}
        nests = [nest for nest in self.graph.nests if not operands.isdisjoint(nest.operands)]
        return sum(prod(size[axis] for axis in nest.axes) for nest in nests)

    def _reader(self, operand: Operand, nest: Nest) -> str:
        """Find which node reads memory for an operand: the nest, or the copy that it begins with."""
        name = self.plan.reads.get(operand)
        if name is None:
            return nest.name
        source = self.plan.copies[name].source
        # A packed view is a copy of a copy: the view is what touches the tensor.
        return source if source in self.plan.copies else name

    def _tile(self, name: str, writers: Sequence[Nest], readers: Sequence[_Reader]) -> None:
        shared, path = self.placement.shared, self.placement.path
        first = writers[0]
        # A buffer lives in the loops that all nests that touch it share.
        depth = min(shared(w.name, r.node) for w in writers for r in readers)
        # In the same body none is needed, but where a reduction adds to the result, or a copy reads it.
        nodes = [first.name, *(r.node for r in readers)]
        together = all(len(path[n]) == depth and n not in self.plan.copies for n in nodes)
        if together and len(writers) == 1 and first.name not in self.placement.start:
            self.inlined.add(first.name)
            return
        program, target = self.schedule.program, first.statement.target
        indices = [*(w.statement.target.index for w in writers), *(r.subscripts for r in readers)]
        order = tuple(p.loop for p in path[first.name])
        relative: list[bool] = []
        extents: list[int] = []
        for d, extent in enumerate(program.type[target.tensor].shape):
            axis = plain_axis(target.index[d])
            # A tile will do only where all subscripts agree: then an iteration touches its own part alone.
            alone = axis is not None and d not in first.scattered
            same = depth > 0 and alone and all(index[d] == target.index[d] for index in indices)
            relative.append(same)
            extents.append(tile(axis, order[:depth], program.size[axis]) if same and axis else extent)
        # So that it is written in sequence.
        dims = _by_innermost_loop(target, order) if len(writers) == 1 else None
        dtype = QINT32 if target.tensor in program.quad_sums else program.arithmetic
        self._found.append(Buffer(name, dtype, prod(extents), "temporary", depth))
        self.locations[name] = Location(name, row_major(extents, dims), depth, tuple(relative))


@lru_cache(maxsize=256)
def _caller_memory(graph: Graph) -> Sequence[tuple[Buffer, Location]]:
    """List the inputs and outputs, which are the same for all schedules of a program."""
    program = graph.program
    kinds: dict[str, Literal["input", "output"]] = dict.fromkeys(program.inputs, "input")
    kinds |= dict.fromkeys(program.outputs, "output")
    found: list[tuple[Buffer, Location]] = []
    for tensor, kind in kinds.items():
        type_ = program.type[tensor]
        found.append((Buffer(tensor, type_.dtype, type_.size, kind), Location(tensor, type_.strides())))
    return found


def _by_innermost_loop(target: Access, order: Order) -> list[int]:
    """Order a target's dimensions as the innermost loops walk them; those without a loop first."""
    last = {axis: i for i, (axis, _) in enumerate(order)}

    def innermost(d: int) -> int:
        return max([last.get(axis, -1) for axis, _ in target.index[d].terms], default=-1)

    return sorted(range(len(target.index)), key=innermost)


# Hoisting

COSTLY = frozenset({"div", "sqrt", *EXPANDED})
ELEMENTS_MAX = 1024
"""An expression is not kept in more elements than this."""
TIMES_MIN = 4
"""Nor is one that is used fewer times."""


def hoisted(tree: LoopTree) -> LoopTree:
    """Compute each costly expression as far outside as it stays the same."""
    if not any(_is_costly(leaf.value) for leaf in leaves(tree.body)):
        return tree
    hoister = _Hoister(tree)
    body = hoister.nodes(tree.body)
    return replace(tree, body=body, buffers=(*tree.buffers, *hoister.buffers)) if hoister.buffers else tree


def _is_costly(value: Value) -> bool:
    return isinstance(value, Call) and (value.function in COSTLY or any(map(_is_costly, value.args)))


@dataclass
class _Around:
    """A loop around the leaf that is looked at.

    Args:
        count: its iterations, tails included; 0 where that is not fixed.
        written: the buffers that something inside it writes.
        before: what is put before it.
        kept: an expression that is computed there, and where its value is.
    """

    loop: Loop
    count: int
    written: frozenset[str]
    before: list[Node] = field(default_factory=list[Node])
    kept: dict[Value, Ref] = field(default_factory=dict[Value, Ref])


class _Hoister:
    def __init__(self, tree: LoopTree) -> None:
        self.tree = tree
        self.buffers: list[Buffer] = []
        self.path: list[_Around] = []

    def nodes(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Rebuild nodes inside the path."""
        found: list[Node] = []
        for node in nodes:
            if isinstance(node, Leaf):
                value = self._value(node.value, node.target)
                found.append(node if value is node.value else Leaf(node.target, node.reduce, value))
                continue
            written = frozenset(leaf.target.buffer for leaf in leaves((node,)))
            around = _Around(node, self._count(node), written)
            self.path.append(around)
            body = self.nodes(node.body)
            self.path.pop()
            found += [*around.before, replace(node, body=body) if body != node.body else node]
        return tuple(found)

    def _count(self, loop: Loop) -> int:
        # The extent of a window depends on loops around it, so it has no fixed count.
        if loop.axis in self.tree.window:
            return 0
        outer = [around.loop.step for around in self.path if around.loop.axis == loop.axis]
        return -(-min(outer, default=self.tree.size[loop.axis]) // loop.step)

    def _value(self, value: Value, target: Ref) -> Value:
        if not isinstance(value, Call) or not _is_costly(value):
            return value
        depth = self._depth(value)
        if depth is not None:
            return self._keep(value, depth, target)
        args = tuple(self._value(arg, target) for arg in value.args)
        # The whole has to stay, but a part of it may leave.
        return value if args == value.args else Call(value.function, args)

    def _depth(self, value: Call) -> int | None:
        """Find how many loops stay around an expression; None where it has to stay where it is."""
        read = list(refs(value))
        moved = {loop for ref in read for loop, _ in ref.strides}
        # The loops that its operands' buffers live in.
        scope = max((self.tree.buffer[ref.buffer].scope for ref in read), default=0)
        for depth in range(scope, len(self.path)):
            inner = self.path[depth:]
            first = inner[0]
            # Nothing inside may write what is read, or the value that is kept would be an old one.
            if first.loop.id not in moved and first.written.isdisjoint(ref.buffer for ref in read):
                return depth if self._pays(inner, moved) else None
        return None

    def _pays(self, inner: Sequence[_Around], moved: set[LoopId]) -> bool:
        axes = {around.loop.axis for around in inner if around.loop.id in moved}
        still = [around.count for around in inner if around.loop.id not in moved]
        whole = all(around.loop.id in moved for around in inner if around.loop.axis in axes)
        size = prod(around.count for around in inner if around.loop.id in moved)
        # 0 elements stand for a count that is not fixed.
        return whole and prod(still) >= TIMES_MIN and 0 < size <= ELEMENTS_MAX

    def _keep(self, value: Call, depth: int, target: Ref) -> Ref:
        """Compute an expression before the loop at a depth; return where its value is."""
        around = self.path[depth]
        # By value: several leaves below one loop often divide by the same root.
        if value in around.kept:
            return around.kept[value]
        moved = {loop for ref in refs(value) for loop, _ in ref.strides}
        inner = [a for a in self.path[depth:] if a.loop.id in moved]
        counts = [a.count for a in inner]
        name = f"{target.buffer}.kept{len(self.buffers) or ''}"
        dtype = ARITHMETIC[self.tree.buffer[target.buffer].dtype]  # not rounded to a narrow target's type
        self.buffers.append(Buffer(name, dtype, prod(counts), "temporary", depth))
        strides = zip([a.loop.id for a in inner], row_major(counts), strict=True)
        kept = around.kept[value] = Ref(name, 0, tuple(strides))
        node: Node = Leaf(kept, None, value)
        for a in reversed(inner):
            node = Loop(a.loop.axis, a.loop.step, (node,))
        around.before.append(node)
        return kept


# Lowering


def lower(schedule: Schedule) -> LoopTree:
    """Lower a schedule; see `planish.levels.loops.lower.placement` for how nests share loops.

    Differences from the thesis (3.5.3): a reduction has an explicit start, just outside its outermost
    reduction loop; padding is a copy whose edges have loops of their own; a buffer of one element that its
    reader's body fills is not a buffer, but part of the reader's expression. Costly expressions leave the
    loops that do not move them (`planish.levels.loops.lower.lowering`).

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

    def _body(self, around: Scope, path: Order) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for item in around.items:
            if isinstance(item, Scope):
                loop = item.loop
                body = self._body(item, (*path, loop))
                nodes.append(Loop(loop[0], loop[1], body, self.kinds.get(id(item), "serial")))
            elif isinstance(item, Start):
                nodes.append(self._start(self.graph.nests[self.graph.nest[item.node]], path))
            elif item in self.plan.copies:
                nodes += self._copy(item)
            elif item not in self.memory.inlined:
                nodes.append(self._leaf(item, path))
        return tuple(nodes)

    def _copy(self, name: str) -> tuple[Node, ...]:
        copy = self.plan.copies[name]
        make = _view_nodes if copy.whole else copy_nodes
        nodes, sizes = make(copy.packed, self.memory.locations[copy.source])
        self.sizes.update(sizes)
        return nodes

    def _leaf(self, name: str, path: Order) -> Leaf:
        if name not in self.graph.nest:
            # A copy of a nest's tile.
            nest = next(n for n in self.graph.nests if self.plan.writes.get(n.name) == name)
            target = nest.statement.target
            location = self.memory.locations[target.tensor]
            return Leaf(location.ref(target.index, path), None, self._result(nest, path))
        nest = self.graph.nests[self.graph.nest[name]]
        # Where nothing was started there is no loop to reduce over: the only term is the result.
        reduce = nest.statement.reduce if name in self.placement.start else None
        target = self.memory.target(nest).ref(nest.statement.target.index, path)
        return Leaf(target, reduce, self._value(nest.statement.value, nest, path))

    def _result(self, nest: Nest, path: Order) -> Value:
        """Read what a nest computed, in its own axes."""
        if nest.name in self.memory.inlined:
            return self._value(nest.statement.value, nest, path)
        return self.memory.target(nest).ref(nest.statement.target.index, path)

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

    def _value(self, expr: Expr, nest: Nest, path: Order) -> Value:
        match expr:
            case Const():
                return expr
            case Access():
                read = self._read(nest.operand[expr], path)
                sums = self.schedule.program.quad_sums
                return Call(TO_FLOAT, (read,)) if expr.tensor in sums else read
            case Apply(function, args):
                values = tuple([self._value(arg, nest, path) for arg in args])
                if not function.startswith(GATHER):
                    return Call(function, values)
                table = args[0]
                assert isinstance(table, Access)
                type_ = self.schedule.program.type[table.tensor]
                dimension = int(function.removeprefix(GATHER))
                numbers = type_.strides()[dimension], type_.shape[dimension]
                return Call(GATHER, (*values, *(Const(float(n)) for n in numbers)))

    def _read(self, operand: Operand, path: Order) -> Value:
        access = operand.access
        if operand in self.plan.reads:
            return self.memory.use(self.plan.reads[operand], access, path)
        for i in self.graph.writers.get(access.tensor, ()):
            if (writer := self.graph.nests[i]).name in self.memory.inlined:
                return self._result(writer, path)
        return self.memory.locations[access.tensor].ref(access.index, path)

    def _kinds(self) -> dict[int, str]:
        """Return the kind of every loop that is not serial, by the identity of its scope."""
        schedule = self.schedule
        kinds: dict[int, str] = {}
        marked = schedule.unrolled or schedule.parallel
        for i, nest in enumerate(self.graph.nests) if marked else ():
            source = self.graph.main if schedule.orders[i] is None else i
            # By the scope of the nest: a loop that several nests share is one scope, marked for all.
            path = self.placement.path[nest.name]
            kinds |= {id(p): "unroll" for p in path if (source, p.loop) in schedule.unrolled}
            # Threads that reduce into one element would race.
            if path and (source, path[0].loop) in schedule.parallel and not path[0].reduces:
                kinds[id(path[0])] = "parallel"
        return kinds


# Listing


def loop_tree_text(schedule: Schedule) -> str:
    """Write which nests share which loops, in the manner of the thesis's listings 1 to 5.

    Below the loops stands how many elements each intermediate tensor, tile and copy takes.
    """
    memory = Memory(schedule)
    lines = [f"ahead: {_copy_text(memory, n)}" for n, copy in memory.plan.copies.items() if copy.ahead]
    lines += _items(memory, memory.placement.root, "")
    lines += [f"%{name}: no buffer" for name in sorted(memory.inlined)]
    lines += [f"%{b.name}: {b.size}" for b in memory.buffers if b.kind in ("temporary", "ahead")]
    return "\n".join(lines) + "\n"


def _items(memory: Memory, scope: Scope, indent: str) -> Iterator[str]:
    for item in scope.items:
        if isinstance(item, Scope):
            yield f"{indent}iter {loop_text(item.loop)}:"
            yield from _items(memory, item, indent + "  ")
        elif isinstance(item, Start):
            statement = memory.graph.nests[memory.graph.nest[item.node]].statement
            yield f"{indent}%{statement.target} = {IDENTITY[statement.reduce or 'add']:g}"
        elif item in memory.plan.copies:
            yield indent + _copy_text(memory, item)
        elif item in memory.graph.nest:
            yield f"{indent}%{memory.graph.nests[memory.graph.nest[item]].statement}"
        else:
            tile = item.removeprefix("write ")
            yield f"{indent}{memory.graph.nests[memory.graph.nest[tile]].statement.target} = %{tile}.tile"


def _copy_text(memory: Memory, name: str) -> str:
    copy = memory.plan.copies[name]
    loops = ", ".join(loop_text(run.loop) for run in copy.packed.runs)
    return f"%{name}[{loops}] = %{copy.source}"
