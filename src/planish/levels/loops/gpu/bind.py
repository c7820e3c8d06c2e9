"""Kernels of a loop tree: loops become blocks and threads, buffers get a memory, and barriers are set.

Each node of the root becomes a kernel. Where the schedule binds its loops, the outermost ones bound to blocks
are the grid, and those bound to threads are executed side by side wherever they stand. What no thread loop
encloses is shared among the threads, as the copy of a tile. Where nothing is bound, the outermost loops whose
iterations are independent are spread over all threads.

A buffer is private where each thread touches only what it wrote itself: where all references are the same, or
where it lives inside all thread loops. Any other buffer that lives within a block is shared, and barriers are
set between threads that write it and others that touch it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from planish.core import ScheduleError
from planish.levels.loops.gpu.bulk import (
    BOX_BYTES,
    COPYING,
    arranged_in_boxes,
    box_of,
    require_alone,
    require_registers,
)
from planish.levels.loops.gpu.copies import pipelined, wide_copy
from planish.levels.loops.gpu.edges import Edges, Path
from planish.levels.loops.gpu.kernels import (
    ALIGNED_BYTES,
    GLOBAL,
    PRIVATE,
    SHARED,
    Arrangement,
    Box,
    Compute,
    Cooperative,
    Counts,
    GpuKernel,
    GpuProgram,
    Item,
    Mma,
    Serial,
    Single,
    synchronized,
)
from planish.levels.loops.gpu.layout import Bindings, KernelOptions, Layout
from planish.levels.loops.gpu.tensor import ROW_ELEMENTS, fragments_of, only_leaf
from planish.levels.loops.ir.schedule import loop_text
from planish.levels.loops.ir.tree import (
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
    loops,
    refs,
)
from planish.levels.loops.lang.program import DTYPES

VECTOR_BYTES, CALLED_BYTES = 64, 32
"""Of vectors at most, and of those that functions take, as PoCL's calling convention differs beyond."""
OPERATORS = frozenset({"add", "sub", "mul", "neg"})
"""Operators that are computed without a function."""
LEAST_ROW = 8
"""Elements of a row after which some may be left free."""


def bind(tree: LoopTree, bindings: Bindings, copies: frozenset[str], layout: Layout) -> GpuProgram:
    """Make the kernels of a tree.

    Args:
        tree: from `planish.levels.loops.lower`.
        bindings: what stands for blocks and threads, in kernels whose outermost loop is bound.
        copies: the buffers that are filled by copying alone.
        layout: further choices.

    Raises:
        ScheduleError: threads or blocks would meet in an element, or a block loop is inside another loop.
    """

    def made(whole: Sequence[Node], stem: str) -> tuple[GpuKernel, ...]:
        nodes = [part for node in whole for part in _parts(node, copies)]
        bound = [bindings if isinstance(n, Loop) and n.id in bindings else {} for n in nodes]
        found = [_Binder(tree, b, copies, layout, n).kernel() for n, b in zip(nodes, bound, strict=True)]
        # As long as each other: Oclgrind takes the local memory of `run10` for that of `run1`, too.
        digits = len(str(len(found) - 1))
        return tuple(replace(kernel, name=f"{stem}{i:0{digits}}") for i, kernel in enumerate(found))

    return GpuProgram(tree, made(tree.body, "run"), made(tree.ahead, "prepare"))


def _parts(node: Node, copies: frozenset[str]) -> Iterator[Node]:
    """List the leaves of a copy, each with loops of its own, which are all spread over threads then.

    A padded copy has nests for its edges beside that of the inside; all write different elements.
    """
    if not isinstance(node, Loop) or any(leaf.target.buffer not in copies for leaf in leaves((node,))):
        yield node
        return
    for inner in node.body:
        for part in _parts(inner, copies):
            yield replace(node, body=(part,))


def _same(found: Sequence[Ref]) -> bool:
    """Return whether references are to the same element."""
    return len({(ref.offset, frozenset(ref.strides)) for ref in found}) == 1


class _Binder:
    """Makes one kernel.

    Args:
        tree: the whole program.
        bindings: of the kernel's loops; empty where nothing is bound.
        copies: buffers that are filled by copying alone.
        layout: further choices.
        root: the node.
    """

    def __init__(
        self, tree: LoopTree, bindings: Bindings, copies: frozenset[str], layout: Layout, root: Node
    ) -> None:
        self.tree, self.bindings, self.copies, self.layout, self.root = tree, bindings, copies, layout, root
        self.leaves = leaves((root,))
        self.refs: dict[str, list[Ref]] = {}
        for ref in (ref for leaf in self.leaves for ref in leaf.refs):
            self.refs.setdefault(ref.buffer, []).append(ref)
        self.trips: dict[LoopId, int] = {}
        self.edges = Edges(tree, self.trips)
        self.around: dict[int, tuple[LoopId, ...]] = {}
        """Leaf, by identity, to the loops around it."""
        self._measure((root,), Path())
        self.threads: dict[LoopId, int] = {}
        self.spaces: dict[str, str] = {}
        self.strides: dict[str, Mapping[LoopId, int]] = {}
        """Buffer to its strides in the kernel's own layout, where they are others than the tree's."""
        self.sizes: dict[str, int] = {}
        self.arranged: dict[str, Arrangement] = {}
        self.block_size = 1
        self.types = {name: tree.buffer[name].dtype for name in self.refs}
        written = {leaf.target.buffer for leaf in self.leaves}
        found = [options for name, options in layout.kernels.items() if name in written]
        self.options = found[0] if found and bindings else KernelOptions()

    def kernel(self) -> GpuKernel:
        """Make the kernel."""
        return self._bound() if self.bindings else self._flat()

    # Launch

    def _bound(self) -> GpuKernel:
        blocks, path, nodes = self._grid()
        found = [loop for loop in self.bindings if self.bindings[loop] == "thread" and loop in self.trips]
        self.threads = {loop: self.trips[loop] for loop in found}
        self.block_size = prod(self.threads.values())
        self._place(len(blocks))
        items = self._all(nodes, path)
        return self._finished(blocks, tuple(self.threads.items()), self.block_size, items)

    def _grid(self) -> tuple[Counts, Path, tuple[Node, ...]]:
        blocks, path, nodes = list[tuple[LoopId, int]](), Path(), (self.root,)
        while len(nodes) == 1 and isinstance(loop := nodes[0], Loop) and self._kind(loop) == "block":
            self._require_independent(loop, len(blocks))
            extent = self.edges.extent(loop.axis, path)
            blocks.append((loop.id, self.trips[loop.id]))
            path = path.into(loop.id, extent, min(loop.step, extent), guarded=extent % loop.step != 0)
            nodes = loop.body
        for loop in loops(nodes):
            if self._kind(loop) == "block":
                what = f"loop '{loop_text(loop.id)}' stands for blocks and is inside another loop"
                raise ScheduleError(what, "Put the loops of blocks outermost.")
        return tuple(blocks), path, nodes

    def _flat(self) -> GpuKernel:
        """Spread the outermost loops whose iterations are independent over all threads."""
        path, nodes = Path(), (self.root,)
        while len(nodes) == 1 and isinstance(loop := nodes[0], Loop):
            if not self._is_independent(loop, len(path.levels)):
                break
            extent = self.edges.extent(loop.axis, path)
            self.threads[loop.id] = self.trips[loop.id]
            guarded = extent % loop.step != 0
            path = path.into(loop.id, extent, min(loop.step, extent), guarded=guarded, thread=True)
            nodes = loop.body
        self._place(0)
        items = self._all(nodes, path)
        counts = tuple(self.threads.items())
        block_size = min(self.layout.block_size, prod(self.threads.values()))
        return self._finished((), counts, block_size, items, flat=True)

    def _finished(
        self, blocks: Counts, threads: Counts, block_size: int, items: tuple[Item, ...], *, flat: bool = False
    ) -> GpuKernel:
        written = {leaf.target.buffer for leaf in self.leaves}
        shared, private = (
            tuple(self._buffer(name) for name in self.refs if self.spaces[name] == space)
            for space in (SHARED, PRIVATE)
        )
        in_global = [b.name for b in self.tree.buffers if self.spaces.get(b.name) == GLOBAL]
        options, names = self.options, frozenset(b.name for b in shared)
        if options.stages > 1:
            items, staged = pipelined(items, names, options, self._tile_elements)
            shared = tuple(replace(b, size=staged.get(b.name, b.size)) for b in shared)
        if block_size > 1:
            items = synchronized(items, names)
        if options.bulk:
            require_alone(items, self.arranged)
        inputs = tuple(name for name in in_global if name not in written)
        outputs = tuple(name for name in in_global if name in written)
        kernel = GpuKernel(
            *("", blocks, threads, block_size, flat, items, shared, private, inputs, outputs),
            raster=options.raster if len(blocks) > 1 else 0,
            resident=options.resident,
            arranged=self.arranged,
            copying=COPYING if options.bulk else 0,
        )
        require_registers(kernel)
        return kernel

    def _tile_elements(self, name: str) -> int:
        """Count the elements of a tile of a shared buffer, up to where the next one may begin."""
        aligned = (BOX_BYTES if self.options.bulk else ALIGNED_BYTES) // DTYPES[self.types[name]]
        return -(-self._buffer(name).size // aligned) * aligned

    def _kind(self, loop: Loop) -> str:
        return "serial" if self._copies(loop) else self.bindings.get(loop.id, "serial")

    def _copies(self, node: Node) -> bool:
        """Return whether a nest fills copies alone."""
        return all(leaf.target.buffer in self.copies for leaf in leaves((node,)))

    # Extents

    def _measure(self, nodes: Sequence[Node], path: Path) -> None:
        """Count the iterations of all loops at most, and note what is around each leaf."""
        for node in nodes:
            if isinstance(node, Leaf):
                self.around[id(node)] = tuple(level.loop for level in path.levels)
                continue
            extent = self.edges.extent(node.axis, path)
            self.trips[node.id] = max(self.trips.get(node.id, 1), -(-extent // node.step))
            self._measure(node.body, path.into(node.id, extent, min(node.step, extent), guarded=False))

    # Independence

    def _is_independent(self, loop: Loop, depth: int) -> bool:
        """Return whether each iteration touches only what it wrote itself."""
        found = leaves(loop.body)
        touched: dict[str, list[Ref]] = {}
        for ref in (ref for leaf in found for ref in leaf.refs):
            touched.setdefault(ref.buffer, []).append(ref)
        for name in {leaf.target.buffer for leaf in found}:
            buffer = self.tree.buffer[name]
            if buffer.kind == "temporary" and buffer.scope > depth:
                continue  # each iteration has its own
            if name in self.copies and not any(r.buffer == name for leaf in found for r in refs(leaf.value)):
                # What is copied, and the edges beside it, are different elements.
                if all(loop.id in ref.stride for ref in touched[name]):
                    continue
                return False
            if not _same(touched[name]) or loop.id not in touched[name][0].stride:
                return False
            if not self._is_injective(touched[name][0]):
                return False
        return True

    def _is_injective(self, ref: Ref) -> bool:
        """Return whether it is plain to see that no two combinations of axes reach one element."""
        units: dict[str, int] = {}
        for (axis, step), stride in ref.strides:
            if stride % step or units.setdefault(axis, stride // step) != stride // step:
                return self._is_panels(ref)
        reach = 0
        for axis, unit in sorted(units.items(), key=lambda item: item[1]):
            if unit <= reach:
                return self._is_panels(ref)
            reach += unit * (self._size(axis) - 1)
        return True

    def _size(self, axis: str) -> int:
        """Count the elements of an axis that a kernel's outermost loop over it walks."""
        return self.edges.extent(axis, Path())

    def _is_panels(self, ref: Ref) -> bool:
        """Return whether each loop moves beyond all that those of smaller strides reach."""
        reach = 0
        for loop, stride in sorted(ref.strides, key=lambda item: item[1]):
            if stride <= reach:
                return False
            reach += stride * (self.trips[loop] - 1)
        return True

    def _require_independent(self, loop: Loop, depth: int) -> None:
        if not self._is_independent(loop, depth):
            what = f"loop '{loop_text(loop.id)}' cannot stand for threads or blocks: its iterations meet"
            raise ScheduleError(what, "Bind loops over axes of the result alone.")

    # Buffers

    def _place(self, blocks: int) -> None:
        written = {leaf.target.buffer for leaf in self.leaves}
        for name, found in self.refs.items():
            buffer = self.tree.buffer[name]
            if buffer.kind != "temporary" or buffer.scope == 0:
                self.spaces[name] = GLOBAL
                alone = not self.threads and not blocks
                own = self._is_own(name, same_threads=True)
                if name in written and self._is_read(name) and not own and not alone:
                    what = f"tensor '{name}' is written and read by different threads of one kernel"
                    raise ScheduleError(what, "Let its readers share no loop with what writes it.")
            elif self._is_own(name):
                self.spaces[name] = PRIVATE
                self._compact(name, found[0])
            elif self._lives_inside(name):
                self.spaces[name] = PRIVATE
            elif buffer.scope < blocks:
                what = f"tensor '{name}' would be shared by blocks"
                raise ScheduleError(what, "Put the loops of blocks outside all that writes and reads it.")
            elif any(self._threads_around(leaf, buffer.scope) for leaf in self._touching(name)):
                what = f"tensor '{name}' would be shared by some threads of a block alone"
                raise ScheduleError(what, "Put the loops of threads inside all that writes and reads it.")
            else:
                self.spaces[name] = SHARED
                self._leave_room(name)
                if name in self.layout.swizzled and not self._for_groups():
                    self._swizzle(name)

    def _is_read(self, name: str) -> bool:
        return any(ref.buffer == name for leaf in self.leaves for ref in refs(leaf.value))

    def _is_own(self, name: str, *, same_threads: bool = False) -> bool:
        """Return whether a thread touches only what it wrote, because all references are the same.

        What fewer thread loops enclose than its readers is computed by each of those threads.

        Args:
            name: of the buffer.
            same_threads: whether all that touches it must be inside the same thread loops.
        """
        if name in self.copies or not _same(self.refs[name]):
            return False
        written, read = set[frozenset[LoopId]](), set[frozenset[LoopId]]()
        for leaf in self._touching(name):
            (written if leaf.target.buffer == name else read).add(self._threads_around(leaf))
        if same_threads:
            return len(written | read) == 1
        return all(one <= other for one in written for other in read)

    def _lives_inside(self, name: str) -> bool:
        """Return whether a buffer lives inside all thread loops, so that each thread has its own."""
        scope = self.tree.buffer[name].scope
        return (
            all(
                self.threads.keys() <= set(self.around[id(leaf)][:scope]) and self._threads_around(leaf)
                for leaf in self._touching(name)
            )
            or not self.threads
        )

    def _touching(self, name: str) -> Iterator[Leaf]:
        return (leaf for leaf in self.leaves if any(ref.buffer == name for ref in leaf.refs))

    def _threads_around(self, leaf: Leaf, depth: int | None = None) -> frozenset[LoopId]:
        """Find the thread loops around a leaf, among a number of the outermost loops."""
        copies = leaf.target.buffer in self.copies
        around = self.around[id(leaf)][:depth]
        return frozenset(loop for loop in around if loop in self.threads and not copies)

    def _compact(self, name: str, ref: Ref) -> None:
        """Lay out the elements of one thread, in the order in which they lie in the tree's buffer."""
        own = sorted([item for item in ref.strides if self._is_walked(item[0])], key=lambda item: item[1])
        strides, size = dict[LoopId, int](), 1
        for loop, _ in own:
            strides[loop] = size
            size *= self.trips[loop]
        self.strides[name], self.sizes[name] = strides, size

    def _is_walked(self, loop: LoopId) -> bool:
        """Return whether a thread walks a loop itself."""
        return loop not in self.threads and self.bindings.get(loop) != "block"

    def _for_groups(self) -> bool:
        """Return whether groups of warps multiply, whose tiles have an order of their own."""
        return self.options.tensor is not None and self.options.tensor.warp is not None

    def _row(self, name: str) -> int:
        """Return the elements of a row of a shared tile; 0 where it has no rows."""
        size = self.tree.buffer[name].size
        moves = {loop: s for ref in self.refs[name] for loop, s in ref.strides}
        first = min(moves, key=moves.__getitem__, default=("", 1))[0]
        strides = {s for (axis, _), s in moves.items() if axis != first and s >= LEAST_ROW and not size % s}
        return min((s for s in strides if self._is_row(name, s)), default=0)

    def _leave_room(self, name: str) -> None:
        """Leave elements free after each row of a shared tile, against bank conflicts."""
        pad, row = self.layout.pads.get(name, 0), self._row(name)
        multiple = ROW_ELEMENTS if self.options.tensor else 1
        pad += -(row + pad) % multiple
        if self._for_groups():
            return
        if not pad or not row or any(ref.offset for ref in self.refs[name]):
            return
        moves = {loop: s for ref in self.refs[name] for loop, s in ref.strides}
        self.strides[name] = {loop: s + s // row * pad for loop, s in moves.items()}
        self.sizes[name] = self.tree.buffer[name].size // row * (row + pad)

    def _swizzle(self, name: str) -> None:
        """Have chunks of a shared tile exchange places by the numbers of their rows."""
        row = self._row(name)
        arranged = Arrangement.of(row, DTYPES[self.types[name]])
        if arranged is None or name in self.strides:
            rows = f"rows of {row} elements" if row else "no rows"
            rows += " with a pad" * (name in self.strides)
            what = f"the tile of '{name.partition('.')[0]}' has {rows}"
            raise ScheduleError(
                f"{what}: nothing can be exchanged", "Use a pad, or rows of 2, 4, 8... chunks."
            )
        self.arranged[name] = arranged

    def _is_row(self, name: str, row: int) -> bool:
        """Return whether references stay in a row by some of their loops, and by the others move by rows.

        Tensor cores may read beyond a row: these elements are beyond an edge, and count for nothing.
        """
        written = [leaf.target for leaf in self.leaves if leaf.target.buffer == name]
        for ref in self.refs[name]:
            within = [(loop, stride) for loop, stride in ref.strides if stride < row]
            if any(stride % row for _, stride in ref.strides if stride >= row):
                return False
            stays = sum(stride * (self.trips[loop] - 1) for loop, stride in within) < row
            if not stays and (self.options.tensor is None or ref in written):
                return False
        return True

    def _buffer(self, name: str) -> Buffer:
        buffer = self.tree.buffer[name]
        size, arranged = self.sizes.get(name, buffer.size), self.arranged.get(name)
        return replace(buffer, size=-(-size // arranged.multiple) * arranged.multiple if arranged else size)

    # Items

    def _all(self, nodes: Sequence[Node], path: Path) -> tuple[Item, ...]:
        return tuple(item for node in nodes for item in self._items(node, path))

    def _items(self, node: Node, path: Path) -> Iterator[Item]:
        if isinstance(node, Leaf):
            yield from self._leaf(node, path)
        elif self._begins_product(node):
            yield self._product(node, path)
        elif self._is_shared_work(node, path):
            yield self._cooperative(node, path)
        elif self._kind(node) == "thread" and not path.cooperative:
            self._require_independent(node, len(path.levels))
            extent = self.edges.extent(node.axis, path)
            # Elsewhere the loop may have more iterations, for which there are threads.
            guarded, rest = self.threads[node.id] * node.step > extent, min(node.step, extent)
            yield from self._all(node.body, path.into(node.id, extent, rest, guarded=guarded, thread=True))
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
        made = Leaf(self._ref(leaf.target), leaf.reduce, self._value(leaf.value))
        if self.spaces[leaf.target.buffer] != PRIVATE or not all(
            self.spaces[ref.buffer] == SHARED for ref in refs(leaf.value)
        ):
            what = "tensor cores read operands that blocks share, and add to registers"
            raise ScheduleError(what, "Share both operands: SharedTile.")
        for ref in refs(made.value):
            # Rows beyond an edge are read, too.
            reach = 1 + sum(stride * (self.trips[loop] - 1) for loop, stride in ref.strides)
            self.sizes[ref.buffer] = max(reach, self.sizes.get(ref.buffer, self.tree.buffer[ref.buffer].size))
        deep, bulk = self.edges.extent(loops.inner[0], path), self.options.bulk
        found = fragments_of(made, loops, self.trips, deep, self.types, bulk=bulk)
        if bulk:
            self._arrange_boxes(found)
        return found

    def _is_shared_work(self, node: Loop, path: Path) -> bool:
        """Return whether no thread loop encloses a nest that writes what threads share."""
        if not self.bindings or path.threads or path.cooperative or not self.threads:
            return False
        if any(self._kind(loop) == "thread" for loop in loops((node,))):
            return False
        targets = {self.spaces[leaf.target.buffer] for leaf in leaves((node,))}
        return PRIVATE not in targets and self._is_independent(node, len(path.levels))

    def _cooperative(self, node: Loop, path: Path) -> Item:
        chain, nodes, path = list[tuple[LoopId, int]](), (node,), replace(path, cooperative=True)
        around = path
        while len(nodes) == 1 and isinstance(loop := nodes[0], Loop):
            if not self._is_independent(loop, len(path.levels)):
                break
            extent = self.edges.extent(loop.axis, path)
            chain.append((loop.id, -(-extent // loop.step)))
            guarded = extent % loop.step != 0 or self.edges.is_cut(loop.axis, path)
            path = path.into(loop.id, extent, min(loop.step, extent), guarded=guarded)
            nodes = loop.body
        if len(nodes) == 1 and isinstance(leaf := nodes[0], Leaf) and isinstance(leaf.value, Ref):
            # As the source lies in memory, so that neighboring threads read neighboring elements.
            source = leaf.value.stride
            chain.sort(key=lambda item: -source.get(item[0], 0))
        items = self._all(nodes, path)
        if self.options.bulk:
            return Cooperative(tuple(chain), items, self._box(chain, items, around))
        if len(items) == 1 and isinstance(item := items[0], Compute) and self._copies_as_it_is(item):
            return wide_copy(tuple(chain), item, DTYPES[self.types[item.leaf.target.buffer]], self.block_size)
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
        sizes = {axis: self.edges.extent(axis, path) if axis in inside else 1 for axis in axes}
        extents = {axis: self._size(axis) for axis in axes}
        itemsize, windows = DTYPES[self.types[source.buffer]], frozenset(self.tree.window)
        return box_of(source, item.leaf.target.buffer, sizes, extents, windows, itemsize)

    def _arrange_boxes(self, item: Mma) -> None:
        """Arrange the operands' tiles as bulk copies do; raises ScheduleError where they cannot."""
        for ref in item.operands:
            self.arranged[ref.buffer] = arranged_in_boxes(item, ref, self._row(ref.buffer))

    def _copies_as_it_is(self, item: Compute) -> bool:
        """Return whether an element is copied without a conversion."""
        value, target = item.leaf.value, item.leaf.target.buffer
        same = isinstance(value, Ref) and self.types[value.buffer] == self.types[target]
        return same and item.lanes is None and item.leaf.reduce is None

    def _serial(self, loop: Loop, path: Path) -> Iterator[Item]:
        extent = self.edges.extent(loop.axis, path)
        full, tail = divmod(extent, loop.step)
        cut = self.edges.is_cut(loop.axis, path)
        # As many as everywhere: a vector of 3 would write the fourth, too.
        whole = full == self.trips[loop.id] and not tail
        lanes = self._lanes(loop, path) if whole else None
        if lanes:
            yield from self._leaf(
                lanes,
                path.into(loop.id, extent, loop.step, guarded=cut and loop.axis in self.tree.window),
                (loop.id, full),
            )
        elif cut or path.cooperative:
            inner = path.into(
                loop.id, extent, min(loop.step, extent), guarded=bool(tail) or loop.axis in self.tree.window
            )
            yield from self._counted(loop, 0, full + (tail > 0), inner)
        else:
            if full:
                yield from self._counted(loop, 0, full, path.into(loop.id, extent, loop.step, guarded=False))
            if tail:
                inner = path.into(loop.id, extent, tail, guarded=False)
                yield from self._counted(loop, full, full + 1, inner)

    def _counted(self, loop: Loop, first: int, last: int, path: Path) -> Iterator[Item]:
        body = self._all(loop.body, path)
        if body:
            unrolled = loop.kind == "unroll" or loop.id in self.layout.unrolled or self._takes_registers(loop)
            yield Serial(loop.id, first, last, body, unrolled)

    def _takes_registers(self, loop: Loop) -> bool:
        """Return whether a loop moves what threads have in registers, which have no addresses."""
        return any(
            loop.id in self.strides.get(name, {}) and self.spaces[name] == PRIVATE for name in self.refs
        )

    def _lanes(self, loop: Loop, path: Path) -> Leaf | None:
        """Return what is computed in the iterations of a loop, where they are one vector."""
        if loop.id not in self.layout.lanes or path.cooperative or len(loop.body) != 1:
            return None
        leaf = loop.body[0]
        width = self.trips[loop.id]
        if not isinstance(leaf, Leaf) or width not in (2, 4, 8, 16):
            return None
        if any(ref.buffer in self.arranged and loop.id in ref.stride for ref in leaf.refs):
            return None
        strides = [self._ref(ref).stride.get(loop.id, 0) for ref in leaf.refs]
        types = {self.types[ref.buffer] for ref in leaf.refs}
        called = _functions(leaf)
        most = CALLED_BYTES if called - OPERATORS else VECTOR_BYTES
        if width * max(DTYPES[dtype] for dtype in types) > most:
            return None
        plain = len(types) == 1 and types <= {"float32", "float64", "int32"} and "gather" not in called
        # A vector of 1 element apart is loaded as a whole, a single element is spread over the lanes.
        return leaf if plain and strides[0] == 1 and set(strides) <= {0, 1} else None

    def _leaf(self, leaf: Leaf, path: Path, lanes: tuple[LoopId, int] | None = None) -> Iterator[Item]:
        found = self.edges.conditions(path)
        if not self._touches_global(leaf) and not path.cooperative and self._stays_inside(leaf):
            # What is computed beyond the edge stays where no element within it is computed from it.
            axes = {axis for (axis, _), _ in leaf.target.strides}
            found = [each for each in found if not any(axis in axes for (axis, _), _ in each.terms)]
        made = Leaf(self._ref(leaf.target), leaf.reduce, self._value(leaf.value))
        computed = Compute(made, tuple(found), lanes)
        missing = tuple(loop for loop in self.threads if loop not in path.threads)
        if path.cooperative or not missing or self.spaces[leaf.target.buffer] == PRIVATE:
            yield computed
        else:
            # A copy may walk loops of its own that are the thread loops' namesakes.
            yield Single(() if len(missing) == len(self.threads) else missing, (computed,))

    def _stays_inside(self, leaf: Leaf) -> bool:
        """Return whether a leaf leaves no buffer, even beyond the edges."""
        for ref in map(self._ref, leaf.refs):
            reach = ref.offset + sum(stride * (self.trips[loop] - 1) for loop, stride in ref.strides)
            if reach >= self.sizes.get(ref.buffer, self.tree.buffer[ref.buffer].size):
                return False
        return True

    def _touches_global(self, leaf: Leaf) -> bool:
        return any(self.spaces[ref.buffer] == GLOBAL for ref in leaf.refs)

    def _value(self, value: Value) -> Value:
        match value:
            case Ref():
                return self._ref(value)
            case Call(function, args):
                return Call(function, tuple([self._value(arg) for arg in args]))
            case _:
                return value

    def _ref(self, ref: Ref) -> Ref:
        """Return a reference in the kernel's own layout."""
        strides = self.strides.get(ref.buffer)
        if strides is None:
            return ref
        return Ref(
            ref.buffer, 0, tuple([(loop, strides[loop]) for loop, _ in ref.strides if loop in strides])
        )


def _functions(leaf: Leaf) -> set[str]:
    """Return what is called to compute a leaf."""

    def called(value: Value) -> Iterator[str]:
        if isinstance(value, Call):
            yield value.function
            for arg in value.args:
                yield from called(arg)

    return {*called(leaf.value), *([leaf.reduce] if leaf.reduce else [])}
