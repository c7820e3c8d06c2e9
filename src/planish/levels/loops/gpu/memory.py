"""Memory of a GPU kernel's buffers: global, shared or private, and where their elements lie.

A buffer is private where each thread touches only what it wrote itself: where all references are the same, or
where it lives inside all thread loops. Any other buffer that lives within a block is shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from planish.core import ScheduleError
from planish.levels.loops.gpu.bulk import BOX_BYTES, arranged_in_boxes
from planish.levels.loops.gpu.kernels import ALIGNED_BYTES, GLOBAL, PRIVATE, SHARED, Arrangement, Mma
from planish.levels.loops.gpu.layout import KernelOptions, Layout
from planish.levels.loops.gpu.nest import Nest, same_element
from planish.levels.loops.gpu.tensor import ROW_ELEMENTS
from planish.levels.loops.ir.tree import Buffer, Call, Leaf, Loop, LoopId, Ref, Value
from planish.levels.loops.lang.program import DTYPES

LEAST_ROW = 8
"""Elements of a row after which some may be left free."""


class Memory:
    """Memory of the buffers of one kernel.

    Args:
        nest: what the kernel computes.
        threads: thread loop to its iterations.
        blocks: loops that stand for blocks.
        layout: choices for all kernels.
        options: choices for this one.

    Raises:
        ScheduleError: threads or blocks would meet in an element.

    Attributes:
        spaces: buffer to `GLOBAL`, `SHARED` or `PRIVATE`.
        strides: buffer to its strides in the kernel's own layout, where they are others than the tree's.
        sizes: buffer to its elements, where they are others than the tree's.
        arranged: shared buffer to the order of its chunks, where that is not the usual one.
    """

    def __init__(
        self, nest: Nest, threads: Mapping[LoopId, int], blocks: int, layout: Layout, options: KernelOptions
    ) -> None:
        self.nest, self.threads, self.layout, self.options = nest, threads, layout, options
        self.spaces: dict[str, str] = {}
        self.strides: dict[str, Mapping[LoopId, int]] = {}
        self.sizes: dict[str, int] = {}
        self.arranged: dict[str, Arrangement] = {}
        self._place(blocks)

    def _place(self, blocks: int) -> None:
        nest = self.nest
        for name, found in nest.refs.items():
            buffer = nest.tree.buffer[name]
            if buffer.kind != "temporary" or buffer.scope == 0:
                self.spaces[name] = GLOBAL
                alone = not self.threads and not blocks
                own = self._is_own(name, same_threads=True)
                if name in nest.written and nest.is_read(name) and not own and not alone:
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
            elif any(self._threads_around(leaf, buffer.scope) for leaf in nest.touching(name)):
                what = f"tensor '{name}' would be shared by some threads of a block alone"
                raise ScheduleError(what, "Put the loops of threads inside all that writes and reads it.")
            else:
                self.spaces[name] = SHARED
                self._leave_room(name)
                if name in self.layout.swizzled and not self._for_groups():
                    self._swizzle(name)

    def _is_own(self, name: str, *, same_threads: bool = False) -> bool:
        """Return whether a thread touches only what it wrote, because all references are the same.

        What fewer thread loops enclose than its readers is computed by each of those threads.

        Args:
            name: of the buffer.
            same_threads: whether all that touches it must be inside the same thread loops.
        """
        if name in self.nest.copies or not same_element(self.nest.refs[name]):
            return False
        written, read = set[frozenset[LoopId]](), set[frozenset[LoopId]]()
        for leaf in self.nest.touching(name):
            (written if leaf.target.buffer == name else read).add(self._threads_around(leaf))
        if same_threads:
            return len(written | read) == 1
        return all(one <= other for one in written for other in read)

    def _lives_inside(self, name: str) -> bool:
        """Return whether a buffer lives inside all thread loops, so that each thread has its own."""
        scope = self.nest.tree.buffer[name].scope
        return (
            all(
                self.threads.keys() <= set(self.nest.around[id(leaf)][:scope]) and self._threads_around(leaf)
                for leaf in self.nest.touching(name)
            )
            or not self.threads
        )

    def _threads_around(self, leaf: Leaf, depth: int | None = None) -> frozenset[LoopId]:
        """Find the thread loops around a leaf, among a number of the outermost loops."""
        copies = leaf.target.buffer in self.nest.copies
        around = self.nest.around[id(leaf)][:depth]
        return frozenset(loop for loop in around if loop in self.threads and not copies)

    def _compact(self, name: str, ref: Ref) -> None:
        """Lay out the elements of one thread, in the order in which they lie in the tree's buffer."""
        own = sorted([item for item in ref.strides if self._is_walked(item[0])], key=lambda item: item[1])
        strides, size = dict[LoopId, int](), 1
        for loop, _ in own:
            strides[loop] = size
            size *= self.nest.trips[loop]
        self.strides[name], self.sizes[name] = strides, size

    def _is_walked(self, loop: LoopId) -> bool:
        """Return whether a thread walks a loop itself."""
        return loop not in self.threads and self.nest.bindings.get(loop) != "block"

    def _for_groups(self) -> bool:
        """Return whether groups of warps multiply, whose tiles have an order of their own."""
        return self.options.tensor is not None and self.options.tensor.warp is not None

    def _row(self, name: str) -> int:
        """Return the elements of a row of a shared tile; 0 where it has no rows."""
        size = self.nest.tree.buffer[name].size
        moves = {loop: s for ref in self.nest.refs[name] for loop, s in ref.strides}
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
        if not pad or not row or any(ref.offset for ref in self.nest.refs[name]):
            return
        moves = {loop: s for ref in self.nest.refs[name] for loop, s in ref.strides}
        self.strides[name] = {loop: s + s // row * pad for loop, s in moves.items()}
        self.sizes[name] = self.nest.tree.buffer[name].size // row * (row + pad)

    def _swizzle(self, name: str) -> None:
        """Have chunks of a shared tile exchange places by the numbers of their rows."""
        row = self._row(name)
        arranged = Arrangement.of(row, DTYPES[self.nest.types[name]])
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
        written = [leaf.target for leaf in self.nest.leaves if leaf.target.buffer == name]
        for ref in self.nest.refs[name]:
            within = [(loop, stride) for loop, stride in ref.strides if stride < row]
            if any(stride % row for _, stride in ref.strides if stride >= row):
                return False
            stays = sum(stride * (self.nest.trips[loop] - 1) for loop, stride in within) < row
            if not stays and (self.options.tensor is None or ref in written):
                return False
        return True

    def _buffer(self, name: str) -> Buffer:
        """Return a buffer with the size that it has in the kernel."""
        size, arranged = self._size(name), self.arranged.get(name)
        whole = -(-size // arranged.multiple) * arranged.multiple if arranged else size
        return replace(self.nest.tree.buffer[name], size=whole)

    def in_space(self, space: str) -> tuple[Buffer, ...]:
        """Return the buffers that are in a memory."""
        return tuple(self._buffer(name) for name in self.nest.refs if self.spaces[name] == space)

    def tile_elements(self, name: str) -> int:
        """Count the elements of a tile of a shared buffer, up to where the next one may begin."""
        aligned = (BOX_BYTES if self.options.bulk else ALIGNED_BYTES) // DTYPES[self.nest.types[name]]
        return -(-self._buffer(name).size // aligned) * aligned

    def takes_registers(self, loop: Loop) -> bool:
        """Return whether a loop moves what threads have in registers, which have no addresses."""
        return any(
            loop.id in self.strides.get(name, {}) and self.spaces[name] == PRIVATE for name in self.nest.refs
        )

    def allow_reads_beyond(self, ref: Ref) -> None:
        """Make a buffer as large as a reference reaches beyond the edges."""
        reach = 1 + sum(stride * (self.nest.trips[loop] - 1) for loop, stride in ref.strides)
        self.sizes[ref.buffer] = max(reach, self._size(ref.buffer))

    def arrange_boxes(self, item: Mma) -> None:
        """Arrange the operands' tiles as bulk copies do; raises ScheduleError where they cannot."""
        for ref in item.operands:
            self.arranged[ref.buffer] = arranged_in_boxes(item, ref, self._row(ref.buffer))

    def _size(self, name: str) -> int:
        return self.sizes.get(name, self.nest.tree.buffer[name].size)

    def stays_inside(self, leaf: Leaf) -> bool:
        """Return whether a leaf leaves no buffer, even beyond the edges."""
        for ref in map(self.ref, leaf.refs):
            reach = ref.offset + sum(stride * (self.nest.trips[loop] - 1) for loop, stride in ref.strides)
            if reach >= self._size(ref.buffer):
                return False
        return True

    def touches_global(self, leaf: Leaf) -> bool:
        """Return whether a leaf reads or writes global memory."""
        return any(self.spaces[ref.buffer] == GLOBAL for ref in leaf.refs)

    def placed(self, leaf: Leaf) -> Leaf:
        """Return a leaf in the kernel's own layout."""
        return Leaf(self.ref(leaf.target), leaf.reduce, self._value(leaf.value))

    def _value(self, value: Value) -> Value:
        match value:
            case Ref():
                return self.ref(value)
            case Call(function, args):
                return Call(function, tuple([self._value(arg) for arg in args]))
            case _:
                return value

    def ref(self, ref: Ref) -> Ref:
        """Return a reference in the kernel's own layout."""
        strides = self.strides.get(ref.buffer)
        if strides is None:
            return ref
        return Ref(
            ref.buffer, 0, tuple([(loop, strides[loop]) for loop, _ in ref.strides if loop in strides])
        )
