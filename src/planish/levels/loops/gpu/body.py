"""Body of a GPU kernel: what its threads compute and copy, from the nodes of a nest.

Loops that stand for threads are executed side by side, wherever they stand. What no thread loop encloses is
shared among the threads, as the copy of a tile. All others are executed one iteration after the other, or as
vectors, and what tensor cores compute is one item.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from planish.core import ScheduleError
from planish.levels.loops.gpu.bulk import box_of
from planish.levels.loops.gpu.copies import wide_copy
from planish.levels.loops.gpu.edges import Path
from planish.levels.loops.gpu.kernels import (
    PRIVATE,
    SHARED,
    Box,
    Compute,
    Cooperative,
    Item,
    Serial,
    Single,
)
from planish.levels.loops.gpu.layout import KernelOptions, Layout
from planish.levels.loops.gpu.memory import Memory
from planish.levels.loops.gpu.nest import Nest
from planish.levels.loops.gpu.tensor import fragments_of, only_leaf
from planish.levels.loops.ir.tree import Call, Leaf, Loop, LoopId, Node, Ref, Value, leaves, loops, refs
from planish.levels.loops.lang.program import DTYPES

VECTOR_BYTES, CALLED_BYTES = 64, 32
"""Of vectors at most, and of those that functions take, as PoCL's calling convention differs beyond."""
OPERATORS = frozenset({"add", "sub", "mul", "neg"})
"""Operators that are computed without a function."""


class Body:
    """Makes the items of one kernel.

    Args:
        nest: what the kernel computes.
        memory: where its buffers lie.
        threads: thread loop to its iterations.
        layout: choices for all kernels.
        options: choices for this one.
    """

    def __init__(
        self,
        nest: Nest,
        memory: Memory,
        threads: Mapping[LoopId, int],
        layout: Layout,
        options: KernelOptions,
    ) -> None:
        self.nest, self.memory, self.threads = nest, memory, threads
        self.layout, self.options = layout, options

    def items(self, nodes: Sequence[Node], path: Path) -> tuple[Item, ...]:
        """Make the items of nodes.

        Args:
            nodes: of the nest.
            path: the loops around them.

        Raises:
            ScheduleError: threads would meet in an element, or the items cannot be what the options demand.
        """
        return tuple(item for node in nodes for item in self._items(node, path))

    def _items(self, node: Node, path: Path) -> Iterator[Item]:
        if isinstance(node, Leaf):
            yield from self._leaf(node, path)
        elif self._begins_product(node):
            yield self._product(node, path)
        elif self._is_shared_work(node, path):
            yield self._cooperative(node, path)
        elif self.nest.kind(node) == "thread" and not path.cooperative:
            self.nest.require_independent(node, len(path.levels))
            extent = self.nest.edges.extent(node.axis, path)
            # Elsewhere the loop may have more iterations, for which there are threads.
            guarded, rest = self.threads[node.id] * node.step > extent, min(node.step, extent)
            yield from self.items(node.body, path.into(node.id, extent, rest, guarded=guarded, thread=True))
        else:
            yield from self._serial(node, path)

    def _begins_product(self, node: Loop) -> bool:
        """Return whether tensor cores compute a nest."""
        loops, found = self.options.tensor, leaves((node,))
        return loops is not None and node.id in loops and all(leaf.reduce for leaf in found)

    def _product(self, node: Loop, path: Path) -> Item:
        """Compute a nest by tensor cores; what lies beyond an edge is computed, and stays where it is."""
        assert self.options.tensor is not None
        loops = self.options.tensor
        leaf = only_leaf(node)
        made = self.memory.placed(leaf)
        if self.memory.spaces[leaf.target.buffer] != PRIVATE or not all(
            self.memory.spaces[ref.buffer] == SHARED for ref in refs(leaf.value)
        ):
            what = "tensor cores read operands that blocks share, and add to registers"
            raise ScheduleError(what, "Share both operands: SharedTile.")
        for ref in refs(made.value):
            # Rows beyond an edge are read, too.
            self.memory.allow_reads_beyond(ref)
        deep, bulk = self.nest.edges.extent(loops.inner[0], path), self.options.bulk
        found = fragments_of(made, loops, self.nest.trips, deep, self.nest.types, bulk=bulk)
        if bulk:
            self.memory.arrange_boxes(found)
        return found

    def _is_shared_work(self, node: Loop, path: Path) -> bool:
        """Return whether no thread loop encloses a nest that writes what threads share."""
        if not self.nest.bindings or path.threads or path.cooperative or not self.threads:
            return False
        if any(self.nest.kind(loop) == "thread" for loop in loops((node,))):
            return False
        targets = {self.memory.spaces[leaf.target.buffer] for leaf in leaves((node,))}
        return PRIVATE not in targets and self.nest.is_independent(node, len(path.levels))

    def _cooperative(self, node: Loop, path: Path) -> Item:
        chain, nodes, path = list[tuple[LoopId, int]](), (node,), replace(path, cooperative=True)
        around = path
        while len(nodes) == 1 and isinstance(loop := nodes[0], Loop):
            if not self.nest.is_independent(loop, len(path.levels)):
                break
            extent = self.nest.edges.extent(loop.axis, path)
            chain.append((loop.id, -(-extent // loop.step)))
            guarded = extent % loop.step != 0 or self.nest.edges.is_cut(loop.axis, path)
            path = path.into(loop.id, extent, min(loop.step, extent), guarded=guarded)
            nodes = loop.body
        if len(nodes) == 1 and isinstance(leaf := nodes[0], Leaf) and isinstance(leaf.value, Ref):
            # As the source lies in memory, so that neighboring threads read neighboring elements.
            source = leaf.value.stride
            chain.sort(key=lambda item: -source.get(item[0], 0))
        items = self.items(nodes, path)
        if self.options.bulk:
            return Cooperative(tuple(chain), items, self._box(chain, items, around))
        if len(items) == 1 and isinstance(item := items[0], Compute) and self._copies_as_it_is(item):
            return wide_copy(
                tuple(chain),
                item,
                DTYPES[self.nest.types[item.leaf.target.buffer]],
                prod(self.threads.values()),
            )
        return Cooperative(tuple(chain), items)

    def _box(self, chain: Sequence[tuple[LoopId, int]], items: tuple[Item, ...], path: Path) -> Box:
        """Describe a copy as that of a box; raises ScheduleError where it is none."""
        item = items[0] if len(items) == 1 else None
        if not isinstance(item, Compute) or not self._copies_as_it_is(item):
            raise ScheduleError("bulk copies convert no elements, and pad none", "Use PipelineCopies.")
        source = item.leaf.value
        assert isinstance(source, Ref)
        inside = {axis for (axis, _), _ in chain}
        axes = dict.fromkeys(axis for (axis, _), _ in source.strides)
        sizes = {axis: self.nest.edges.extent(axis, path) if axis in inside else 1 for axis in axes}
        extents = {axis: self.nest.size(axis) for axis in axes}
        itemsize, windows = DTYPES[self.nest.types[source.buffer]], frozenset(self.nest.tree.window)
        return box_of(source, item.leaf.target.buffer, sizes, extents, windows, itemsize)

    def _copies_as_it_is(self, item: Compute) -> bool:
        """Return whether an element is copied without a conversion."""
        value, target = item.leaf.value, item.leaf.target.buffer
        same = isinstance(value, Ref) and self.nest.types[value.buffer] == self.nest.types[target]
        return same and item.lanes is None and item.leaf.reduce is None

    def _serial(self, loop: Loop, path: Path) -> Iterator[Item]:
        extent = self.nest.edges.extent(loop.axis, path)
        full, tail = divmod(extent, loop.step)
        cut = self.nest.edges.is_cut(loop.axis, path)
        # As many as everywhere: a vector of 3 would write the fourth, too.
        whole = full == self.nest.trips[loop.id] and not tail
        lanes = self._lanes(loop, path) if whole else None
        if lanes:
            yield from self._leaf(
                lanes,
                path.into(loop.id, extent, loop.step, guarded=cut and loop.axis in self.nest.tree.window),
                (loop.id, full),
            )
        elif cut or path.cooperative:
            inner = path.into(
                loop.id,
                extent,
                min(loop.step, extent),
                guarded=bool(tail) or loop.axis in self.nest.tree.window,
            )
            yield from self._counted(loop, 0, full + (tail > 0), inner)
        else:
            if full:
                yield from self._counted(loop, 0, full, path.into(loop.id, extent, loop.step, guarded=False))
            if tail:
                inner = path.into(loop.id, extent, tail, guarded=False)
                yield from self._counted(loop, full, full + 1, inner)

    def _counted(self, loop: Loop, first: int, last: int, path: Path) -> Iterator[Item]:
        body = self.items(loop.body, path)
        if body:
            unrolled = (
                loop.kind == "unroll" or loop.id in self.layout.unrolled or self.memory.takes_registers(loop)
            )
            yield Serial(loop.id, first, last, body, unrolled)

    def _lanes(self, loop: Loop, path: Path) -> Leaf | None:
        """Return what is computed in the iterations of a loop, where they are one vector."""
        if loop.id not in self.layout.lanes or path.cooperative or len(loop.body) != 1:
            return None
        leaf = loop.body[0]
        width = self.nest.trips[loop.id]
        if not isinstance(leaf, Leaf) or width not in (2, 4, 8, 16):
            return None
        if any(ref.buffer in self.memory.arranged and loop.id in ref.stride for ref in leaf.refs):
            return None
        strides = [self.memory.ref(ref).stride.get(loop.id, 0) for ref in leaf.refs]
        types = {self.nest.types[ref.buffer] for ref in leaf.refs}
        called = _functions(leaf)
        most = CALLED_BYTES if called - OPERATORS else VECTOR_BYTES
        if width * max(DTYPES[dtype] for dtype in types) > most:
            return None
        plain = len(types) == 1 and types <= {"float32", "float64", "int32"} and "gather" not in called
        # A vector of 1 element apart is loaded as a whole, a single element is spread over the lanes.
        return leaf if plain and strides[0] == 1 and set(strides) <= {0, 1} else None

    def _leaf(self, leaf: Leaf, path: Path, lanes: tuple[LoopId, int] | None = None) -> Iterator[Item]:
        found = self.nest.edges.conditions(path)
        if not self.memory.touches_global(leaf) and not path.cooperative and self.memory.stays_inside(leaf):
            # What is computed beyond the edge stays where no element within it is computed from it.
            axes = {axis for (axis, _), _ in leaf.target.strides}
            found = [each for each in found if not any(axis in axes for (axis, _), _ in each.terms)]
        computed = Compute(self.memory.placed(leaf), tuple(found), lanes)
        missing = tuple(loop for loop in self.threads if loop not in path.threads)
        if path.cooperative or not missing or self.memory.spaces[leaf.target.buffer] == PRIVATE:
            yield computed
        else:
            # A copy may walk loops of its own that are the thread loops' namesakes.
            yield Single(() if len(missing) == len(self.threads) else missing, (computed,))


def _functions(leaf: Leaf) -> set[str]:
    """Return what is called to compute a leaf."""

    def called(value: Value) -> Iterator[str]:
        if isinstance(value, Call):
            yield value.function
            for arg in value.args:
                yield from called(arg)

    return {*called(leaf.value), *([leaf.reduce] if leaf.reduce else [])}
