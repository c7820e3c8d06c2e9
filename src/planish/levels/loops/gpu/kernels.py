"""GPU kernels: what blocks and threads execute, and where each buffer lies.

A kernel is launched once, with blocks of threads in one dimension. The number of a block stands for the
iterations of its block loops, and that of a thread for those of its thread loops, both in row-major order.
All else is in the body: counted loops, barriers, and elements that are computed where conditions hold. The
loop tree that a kernel is made of has these loops at any depth, since their iterations are independent; so an
interpreter that executes the tree in order computes the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from planish.core import TargetError
from planish.levels.loops.ir.tree import Buffer, Leaf, LoopId, LoopTree, refs
from planish.levels.loops.lang.program import DTYPES

GLOBAL, SHARED, PRIVATE = "global", "shared", "private"
"""Memory of all threads, of a block, and of a thread: what is private is in registers where it fits."""

Counts = tuple[tuple[LoopId, int], ...]
"""Loops with their iterations, outermost first."""


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
        lanes: the innermost loop, with so many iterations, whose elements are computed as one vector; None
            for a single element.
    """

    leaf: Leaf
    conditions: tuple[Condition, ...] = ()
    lanes: tuple[LoopId, int] | None = None


@dataclass(frozen=True)
class Serial:
    """Counted loop over iterations `first` to `last` - 1, in order.

    Args:
        loop: whose iterations these are.
        first: the first one.
        last: behind the last one.
        body: what is executed.
        unrolled: whether the body is repeated instead.
    """

    loop: LoopId
    first: int
    last: int
    body: tuple[Item, ...]
    unrolled: bool = False


@dataclass(frozen=True)
class Cooperative:
    """Iterations that the threads of a block share: thread t executes t, t + threads, and so on.

    Args:
        loops: whose iterations are counted in row-major order.
        body: what is executed for each.
    """

    loops: Counts
    body: tuple[Item, ...]


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


Item = Compute | Serial | Cooperative | Single | Barrier


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

    @property
    def grid_size(self) -> int:
        """Return how many blocks are launched."""
        if self.flat:
            return -(-prod(n for _, n in self.threads) // self.block_size)
        return prod(n for _, n in self.blocks)


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


def require_fit(kernels: GpuProgram, block_size: int, shared: int) -> None:
    """Raise TargetError where kernels need more threads or shared memory than a device has."""
    for kernel in (*kernels.ahead, *kernels.kernels):
        if kernel.block_size > block_size:
            raise TargetError(f"a block has {kernel.block_size} threads, the device allows {block_size}")
        if (needed := shared_bytes(kernel)) > shared:
            raise TargetError(f"a block shares {needed} bytes, the device has {shared}")


def shared_bytes(kernel: GpuKernel) -> int:
    """Count the bytes that the threads of a block share."""
    return sum(b.size * DTYPES[b.dtype] for b in kernel.shared)


def computations(items: tuple[Item, ...]) -> Iterator[Compute]:
    """List the computations of items, in order."""
    for item in items:
        if isinstance(item, Compute):
            yield item
        elif not isinstance(item, Barrier):
            yield from computations(item.body)


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
