"""GPU kernels: what blocks and threads execute, and where each buffer lies.

A kernel is launched once, with blocks of threads in one dimension. The number of a block stands for the
iterations of its block loops, and that of a thread for those of its thread loops, both in row-major order.
All else is in the body: counted loops, barriers, and elements that are computed where conditions hold. The
loop tree that a kernel is made of has these loops at any depth, since their iterations are independent; so an
interpreter that executes the tree in order computes the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from planish.core import TargetError
from planish.levels.loops.ir.tree import Buffer, Leaf, LoopId, LoopTree, Ref, refs
from planish.levels.loops.lang.program import DTYPES

GLOBAL, SHARED, PRIVATE = "global", "shared", "private"
"""Memory of all threads, of a block, and of a thread: what is private is in registers where it fits."""

ALIGNED_BYTES = 16
"""Of what is copied at once, and of rows that tensor cores read: they begin at a multiple of it."""
STATIC_SHARED = 48 << 10
"""Bytes of shared memory that a CUDA kernel may have without asking the driver for more."""
EXCHANGED_WORDS = 6
"""Words of 4 bytes that a thread shows to the others of its warp where OpenCL emulates `mma.sync`."""
_BANK_BITS = 3
"""Chunks of 16 bytes in all banks together are 8."""
Counts = tuple[tuple[LoopId, int], ...]
"""Loops with their iterations, outermost first."""


@dataclass(frozen=True)
class Arrangement:
    """Order of the elements of a shared buffer, so that neighboring rows do not meet in a bank.

    Chunks of 16 bytes exchange places within a row, by the bits of the row's number. Longer rows than a panel
    are divided in panels, which lie one after the other.

    Args:
        low: bits of an element's number in its chunk.
        bits: bits of a chunk's number that are exchanged.
        shift: from the chunk's bits to those of the row.
        panel: elements of a panel's row; 0 where rows are not divided.
        row: elements of a row, where they are divided.
        rows: of a tile, where they are divided.
    """

    low: int
    bits: int
    shift: int
    panel: int = 0
    row: int = 0
    rows: int = 0

    @staticmethod
    def of(row: int, itemsize: int) -> Arrangement | None:
        """Return the order for rows of a length in elements; None where they are not 2, 4, 8... chunks."""
        chunk = ALIGNED_BYTES // itemsize
        if row < 2 * chunk or row & (row - 1):
            return None
        chunks = (row // chunk).bit_length() - 1
        # Rows shorter than all banks together lie beside each other in them.
        return Arrangement(chunk.bit_length() - 1, min(_BANK_BITS, chunks), max(_BANK_BITS, chunks))

    @property
    def mask(self) -> int:
        """Return the bits of an element's number that are exchanged."""
        return ((1 << self.bits) - 1) << self.low

    @property
    def multiple(self) -> int:
        """Return elements that are exchanged among themselves: a buffer has a multiple of them."""
        return 1 << (self.low + self.bits)

    def place(self, at: int) -> int:
        """Return where the element is that has this number in row-major order."""
        if self.panel:
            tile, inside = divmod(at, self.row * self.rows)
            row, column = divmod(inside, self.row)
            panel, column = divmod(column, self.panel)
            at = tile * self.row * self.rows + (panel * self.rows + row) * self.panel + column
        return at ^ (at >> self.shift & self.mask)


@dataclass(frozen=True)
class Condition:
    """Condition under which an element is computed: `sum(stride * iteration) < limit`.

    Args:
        terms: (loop, stride).
        limit: an integer.
    """

    terms: tuple[tuple[LoopId, int], ...]
    limit: int


@dataclass(frozen=True)
class Compute:
    """Computation of one element, or of as many as a vector has.

    Args:
        leaf: what is computed, by references into the kernel's own layout.
        conditions: all must hold.
        lanes: the innermost loop and its iterations, whose elements are computed as one vector; None
            for a single element.
        aligned: whether it copies as many elements of one type at once: all begin at a multiple of so many,
            and the conditions hold for all or for none.
    """

    leaf: Leaf
    conditions: tuple[Condition, ...] = ()
    lanes: tuple[LoopId, int] | None = None
    aligned: bool = False


@dataclass(frozen=True)
class Mma:
    """Product of two tiles in shared memory by tensor cores, added to accumulators of a warp or of four.

    A fragment is 16 x 8 elements of the result, and 16 of the reduction (PTX: `mma.m16n8k16`). A thread has
    four elements of it: rows `row` and `row` + 8, and two neighboring columns. The last two thread loops are
    `row`, of 8 iterations, and `column`, of 4, so that the threads of a warp are numbered as the instruction
    demands. A thread computes what `leaf` does in the iterations of all other loops. Four warps together
    (PTX: `wgmma`) have a loop `warp` around these two, for 64 rows, and compute all their columns at once;
    they read matrices of 8 x 8 elements that lie in sequence.

    Args:
        leaf: `target += a * b`; the target is private, a and b are shared.
        rows: loops over fragments, along the rows.
        columns: likewise, along the columns.
        depth: likewise, along the reduction.
        high: loop over the two halves of the rows.
        row: thread loop over the rows of a half.
        column: thread loop over pairs of columns.
        pair: loop over the two columns of a pair.
        inner: loops over the 16 elements of the reduction.
        dtype: of a and b.
        warp: thread loop over four warps that multiply together; None where each does so by itself.
    """

    leaf: Leaf
    rows: Counts
    columns: Counts
    depth: Counts
    high: LoopId
    row: LoopId
    column: LoopId
    pair: LoopId
    inner: Counts
    dtype: str
    warp: LoopId | None = None

    @property
    def operands(self) -> tuple[Ref, Ref]:
        """Return the references to a, which moves along the rows, and to b."""
        one, other = refs(self.leaf.value)
        return (one, other) if self.row in one.stride else (other, one)

    @property
    def walked(self) -> Counts:
        """Return the loops that a thread walks."""
        return (*self.depth, *self.rows, *self.columns, (self.high, 2), (self.pair, 2), *self.inner)


@dataclass(frozen=True)
class Serial:
    """Counted loop over iterations `first` to `last` - 1, in order.

    Args:
        loop: whose iterations these are.
        first: the first one.
        last: after the last one.
        body: what is executed.
        unrolled: whether the body is repeated instead.
    """

    loop: LoopId
    first: int
    last: int
    body: tuple[Item, ...]
    unrolled: bool = False


@dataclass(frozen=True)
class Pipelined:
    """Counted loop that copies to shared memory some iterations ahead of those that use the copies.

    The copies are executed for the first `ahead` iterations. Then each iteration waits for its own ones and
    for all threads, executes the copies of the iteration `ahead`, and then the body. So each buffer of the
    copies has room for `stages` tiles; iteration i uses tile i % `stages`.

    Args:
        loop: whose iterations these are.
        first: the first one.
        last: after the last one.
        stages: tiles of each buffer; 2 at least.
        tile: loop whose iteration is the number of the tile, in references to the buffers.
        copies: to shared memory; by the kernel's copying threads, where it has some.
        body: what reads them, and writes to no shared memory.
        unfinished: iterations whose products by groups of warps may be unfinished when the next one begins.
    """

    loop: LoopId
    first: int
    last: int
    stages: int
    tile: LoopId
    copies: tuple[Item, ...]
    body: tuple[Item, ...]
    unfinished: int = 0

    @property
    def ahead(self) -> int:
        """Return iterations that copies are ahead of their use."""
        return self.stages - 1 - self.unfinished


@dataclass(frozen=True)
class Dimension:
    """Dimension of a tensor that is copied in boxes.

    Args:
        extent: elements.
        stride: elements between neighbors; 1 for the first dimension.
        box: elements of a box.
        start: (loop, elements) by which the box's first element moves.
    """

    extent: int
    stride: int
    box: int
    start: Counts


@dataclass(frozen=True)
class Box:
    """Copy of a box of a tensor in global memory, as the tensor memory accelerator does it.

    What is outside the tensor is 0. Elements are arranged in shared memory as `Arrangement` says.

    Args:
        source: buffer in global memory.
        target: buffer in shared memory.
        dimensions: the one whose elements are neighbors first.
        rows: the dimension of the tile's rows; the first one is that of its columns.
    """

    source: str
    target: str
    dimensions: tuple[Dimension, ...]
    rows: int

    @property
    def elements(self) -> int:
        """Return the elements of the box."""
        return prod(dimension.box for dimension in self.dimensions)


@dataclass(frozen=True)
class Cooperative:
    """Iterations that the threads of a block share: thread t executes t, t + threads, and so on.

    Args:
        loops: whose iterations are counted in row-major order.
        body: what is executed for each.
        box: how the tensor memory accelerator copies the same; None where threads do.
    """

    loops: Counts
    body: tuple[Item, ...]
    box: Box | None = None


@dataclass(frozen=True)
class Single:
    """Work of those threads alone whose number is 0 in some thread loops.

    Args:
        loops: the thread loops; none for the first thread alone.
        body: what is executed.
    """

    loops: tuple[LoopId, ...]
    body: tuple[Item, ...]


@dataclass(frozen=True)
class Barrier:
    """Wait until all threads of the block have come so far."""


Item = Compute | Mma | Serial | Pipelined | Cooperative | Single | Barrier


@dataclass(frozen=True)
class GpuKernel:
    """A kernel.

    Args:
        name: of its function.
        blocks: loops whose iterations blocks stand for.
        threads: loops whose iterations threads stand for.
        block_size: threads of a block.
        flat: whether threads of all blocks together are numbered, and stand for the iterations of `threads`;
            then there are no block loops, and the last block may have threads without work.
        body: what each thread executes.
        shared: buffers of a block.
        private: buffers of a thread.
        inputs: global buffers that are only read, in order.
        outputs: global buffers that are written, in order.
        raster: blocks are numbered in bands of n iterations of the last but one block loop, through all
            of the last one, so that blocks that run at the same time share what they read; 0 for row-major.
        resident: blocks that a multiprocessor is to execute at the same time, for which the compiler limits
            registers; 0 for as many as fit.
        arranged: shared buffer to the order of its elements, where that is not row-major.
        copying: threads beside `block_size` that do nothing but the copies of a `Pipelined` loop. They are
            numbered after the others.
    """

    name: str
    blocks: Counts
    threads: Counts
    block_size: int
    flat: bool
    body: tuple[Item, ...]
    shared: tuple[Buffer, ...]
    private: tuple[Buffer, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    raster: int = 0
    resident: int = 0
    arranged: Mapping[str, Arrangement] = field(default_factory=dict[str, Arrangement])
    copying: int = 0

    @property
    def launched(self) -> int:
        """Return how many threads of a block are launched."""
        return self.block_size + self.copying

    @property
    def grid_size(self) -> int:
        """Return how many blocks are launched."""
        if self.flat:
            return -(-prod(n for _, n in self.threads) // self.block_size)
        return prod(n for _, n in self.blocks)

    def row_major(self, block: int) -> int:
        """Return the row-major number of a block, in the order of the block loops, from its own number."""
        if not self.raster:
            return block
        rows, columns = (n for _, n in self.blocks[-2:])
        rest = block % (rows * columns)
        band = rest // (self.raster * columns) * self.raster
        within = rest - band * columns
        wide = min(self.raster, rows - band)
        return block - rest + (band + within % wide) * columns + within // wide


@dataclass(frozen=True)
class GpuProgram:
    """The kernels of a scheduled program, executed one after the other.

    Args:
        tree: what they are made of.
        kernels: of each call.
        ahead: executed once, to fill the buffers that do not change.
    """

    tree: LoopTree
    kernels: tuple[GpuKernel, ...]
    ahead: tuple[GpuKernel, ...] = ()

    @property
    def temporaries(self) -> tuple[Buffer, ...]:
        """Return the buffers in global memory that neither inputs nor outputs are."""
        used = {name for k in (*self.kernels, *self.ahead) for name in (*k.inputs, *k.outputs)}
        return tuple(b for b in self.tree.buffers if b.kind in ("ahead", "temporary") and b.name in used)


def require_fit(kernels: GpuProgram, block_size: int, shared: int, *, emulated: bool = False) -> None:
    """Raise TargetError where kernels need more threads or shared memory than a device has.

    Args:
        kernels: what would be launched.
        block_size: threads of a block that the device allows.
        shared: bytes of shared memory of a block.
        emulated: whether threads exchange fragments in shared memory, as in OpenCL.
    """
    for kernel in (*kernels.ahead, *kernels.kernels):
        if kernel.launched > block_size:
            raise TargetError(f"a block has {kernel.launched} threads, the device allows {block_size}")
        needed = exchanged_bytes(kernel) if emulated else barrier_bytes(kernel)
        needed += shared_bytes(kernel)
        if needed > shared:
            raise TargetError(f"a block shares {needed} bytes, the device has {shared}")


@dataclass(frozen=True)
class TensorMap:
    """Tensor in global memory as CUDA's driver describes it for copies in boxes.

    Args:
        source: buffer in global memory.
        target: buffer in shared memory, in whose panels boxes are.
        extents: elements of each dimension, the one with neighboring elements first.
        strides: bytes between neighbors along the other dimensions.
        box: elements of a box along each dimension.
        swizzle: of the driver: 1 for 32 bytes, 2 for 64, 3 for 128.
    """

    source: str
    target: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


def tensor_maps(kernel: GpuKernel) -> tuple[TensorMap, ...]:
    """List the tensors that a kernel's copying threads read."""
    found = (boxes(item.copies) for item in kernel.body if isinstance(item, Pipelined))
    return tuple(_map(kernel, box) for each in found for box in each)


def boxes(copies: tuple[Item, ...]) -> list[Box]:
    """List the boxes among copies."""
    return [item.box for item in copies if isinstance(item, Cooperative) and item.box]


def _map(kernel: GpuKernel, box: Box) -> TensorMap:
    arranged, dimensions = kernel.arranged[box.target], box.dimensions
    return TensorMap(
        box.source,
        box.target,
        tuple(d.extent for d in dimensions),
        tuple(2 * d.stride for d in dimensions[1:]),
        (arranged.multiple, *(d.box for d in dimensions[1:])),
        arranged.bits,
    )


def exchanged_bytes(kernel: GpuKernel) -> int:
    """Count the bytes by which threads exchange fragments where OpenCL emulates `mma.sync`."""
    alone = any(isinstance(item, Mma) and item.warp is None for item in computations(kernel.body))
    return 4 * EXCHANGED_WORDS * kernel.block_size if alone else 0


def shared_bytes(kernel: GpuKernel) -> int:
    """Count the bytes that the threads of a block share."""
    return sum(map(buffer_bytes, kernel.shared))


def dynamic_bytes(kernel: GpuKernel) -> int:
    """Count the bytes of shared memory that a CUDA kernel is launched with: all, if they are many."""
    found = shared_bytes(kernel) + barrier_bytes(kernel)
    return found if found > STATIC_SHARED or kernel.copying else 0


def barrier_bytes(kernel: GpuKernel) -> int:
    """Count the bytes of the barriers by which copying threads and others wait for each other in CUDA."""
    return max(
        [2 * 8 * item.stages for item in kernel.body if isinstance(item, Pipelined)] * (kernel.copying > 0),
        default=0,
    )


def buffer_bytes(buffer: Buffer) -> int:
    """Count the bytes of a shared buffer, which ends at a multiple of `ALIGNED_BYTES`."""
    return -(-buffer.size * DTYPES[buffer.dtype] // ALIGNED_BYTES) * ALIGNED_BYTES


def all_items(items: Sequence[Item]) -> Iterator[Item]:
    """List items and those inside them, in order."""
    for item in items:
        yield item
        match item:
            case Pipelined(copies=copies, body=body):
                yield from all_items((*copies, *body))
            case Serial(body=body) | Cooperative(body=body) | Single(body=body):
                yield from all_items(body)
            case Compute() | Mma() | Barrier():
                pass


def computations(items: Sequence[Item]) -> Iterator[Compute | Mma]:
    """List the computations of items, in order."""
    return (item for item in all_items(items) if isinstance(item, Compute | Mma))


def walked_loops(items: Sequence[Item]) -> Iterator[LoopId]:
    """List the loops that threads walk, or whose iterations they share, some several times."""
    for item in all_items(items):
        match item:
            case Compute(lanes=lanes):
                if lanes:
                    yield lanes[0]
            case Mma(rows=rows, columns=columns, depth=depth):
                yield from (loop for loop, _ in (*rows, *columns, *depth))
                yield from (item.high, item.row, item.column, item.pair)
                yield from (loop for loop, _ in item.inner)
            case Serial():
                yield item.loop
            case Pipelined():
                yield from (item.loop, item.tile)
            case Cooperative():
                yield from (loop for loop, _ in item.loops)
            case Single() | Barrier():
                pass


# Barriers


def synchronized(items: tuple[Item, ...], shared: frozenset[str]) -> tuple[Item, ...]:
    """Set barriers between threads that write a shared buffer and others that touch it.

    Args:
        items: what the threads of a block execute.
        shared: the buffers of the block.
    """
    return _Barriers(shared).set(items, _Touched())[0] if shared else items


@dataclass(frozen=True)
class _Touched:
    """Shared buffers that were read and written since the last barrier."""

    read: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()

    def meets(self, other: _Touched) -> bool:
        """Return whether what follows must wait."""
        return bool(other.read & self.written or other.written & (self.read | self.written))

    def then(self, other: _Touched) -> _Touched:
        """Return both together."""
        return _Touched(self.read | other.read, self.written | other.written)


class _Barriers:
    def __init__(self, shared: frozenset[str]) -> None:
        self.shared = shared

    def set(self, items: tuple[Item, ...], before: _Touched) -> tuple[tuple[Item, ...], _Touched]:
        """Set barriers, and return what is touched since the last one."""
        found: list[Item] = []
        for item in items:
            touched = self._touched(item)
            if isinstance(item, Barrier):
                before = _Touched()
            elif isinstance(item, Serial) and touched.meets(touched):
                # Twice: what the end of an iteration touches, the next one begins with.
                body, after = self.set(item.body, before)
                if item.last - item.first > 1:
                    body, after = self.set(body, after)
                item, before = replace(item, body=body), after
            elif before.meets(touched):
                found.append(Barrier())
                before = touched
            else:
                before = before.then(touched)
            found.append(item)
        return tuple(found), before

    def _touched(self, item: Item) -> _Touched:
        found = [computed.leaf for computed in computations((item,))]
        written = {leaf.target.buffer for leaf in found}
        read = {ref.buffer for leaf in found for ref in refs(leaf.value)}
        read |= {leaf.target.buffer for leaf in found if leaf.reduce}
        return _Touched(self.shared & read, self.shared & written)
