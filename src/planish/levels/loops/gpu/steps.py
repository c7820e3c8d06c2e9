"""Steps of a GPU schedule.

A template is written as a few steps: how an axis of the result is divided among blocks, threads and elements
(AutoTVM section 2, and TVM's templates for GPUs), how a reduction is staged, and which tiles threads share.
What no step binds is spread over all threads: the candidate without steps is the untuned program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planish.core import Step


@dataclass(frozen=True)
class GpuStep(Step):
    """A step of a GPU schedule.

    Every step has `nest`: the tensor whose nest is meant; empty for the main nest.
    """


@dataclass(frozen=True)
class BlockTile(GpuStep):
    """Divide an axis of the result among blocks, threads, and elements of a thread.

    ::

        m   -- BlockTile("m", threads=16, elements=4, repeats=2) -->   m:128 block, m:64, m:4 thread, m

    Args:
        axis: one of the result.
        threads: of a block along the axis.
        elements: in sequence, of a thread.
        repeats: runs of elements of a thread, as far apart as the threads' elements together (TVM's virtual
            threads).
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    axis: str
    threads: int
    elements: int = 1
    repeats: int = 1
    nest: str = ""


@dataclass(frozen=True)
class ReduceTile(GpuStep):
    """Walk a reduced axis in tiles, around what threads share.

    ::

        m:128 block, m:4 thread, m, k   -- ReduceTile("k", 16) -->   m:128 block, k:16, k, m:4 thread, m

    Args:
        axis: one that is reduced.
        size: elements of a tile; 1 takes the axis element by element.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    axis: str
    size: int
    nest: str = ""


@dataclass(frozen=True)
class SharedTile(GpuStep):
    """Have the threads of a block copy the tile of a tensor that they share, inside the tiles of reductions.

    ::

        k:16, k, m:4 thread, m   -- SharedTile("A") -->   k:16 (A.packed = A by all threads), k, m:4 thread, m

    Args:
        tensor: what the nest reads in one way.
        pad: elements that are left free after each row, against conflicts of banks.
        swizzle: whether chunks of 16 bytes exchange places instead, by the number of their row. Rows are 2,
            4, 8... chunks then; no memory is left free.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    tensor: str
    pad: int = 0
    swizzle: bool = False
    nest: str = ""


@dataclass(frozen=True)
class PackOperand(GpuStep):
    """Copy a tensor in the order in which the nest reads it: a constant once, any other before each call.

    ::

        k:32 block, c, k   -- PackOperand("W") -->   (W.packed = W), k:32 block, c, k (reading W.packed)

    So the elements of a vector become neighbors where they are not in the tensor.

    Args:
        tensor: what the nest reads in one way.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    tensor: str
    nest: str = ""


@dataclass(frozen=True)
class VectorLanes(GpuStep):
    """Compute the elements of a thread along an axis as one vector, where they are 2, 4, 8 or 16.

    Args:
        axis: one of the result; its elements become the innermost loop. Operands that move along it have
            neighbors there, or a `PackOperand`.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    axis: str
    nest: str = ""


@dataclass(frozen=True)
class UnrollReduction(GpuStep):
    """Repeat the innermost loop of a reduction instead of counting.

    Args:
        axis: one that is reduced.
        factor: how many times; the whole tile where it has no more.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    axis: str
    factor: int
    nest: str = ""


@dataclass(frozen=True)
class SplitReduction(GpuStep):
    """Divide the main nest's reduction among threads or blocks, whose sums are added up.

    ::

        m:4 thread, k   -- SplitReduction("k", 8) -->   k.part thread, m:4 thread, k.in; then the sum of 8

    Among threads the sums of a block are in shared memory; among blocks they are in global memory, and a
    further kernel adds them up (split-k). Steps that name the axis mean what a part has of it.

    Args:
        axis: one that is reduced; the parts are of equal size.
        parts: how many.
        over: "threads" or "blocks".
    """

    axis: str
    parts: int
    over: str = "threads"
    nest: str = ""


@dataclass(frozen=True)
class PipelineCopies(GpuStep):
    """Copy shared tiles ahead of their use: double buffering with 2 stages, or more.

    ::

        k:16 (P = A), k, m   -- PipelineCopies(2) -->   (P[0] = A), k:16 (P[1] = next tile), k, m

    From sm_80 on copies are asynchronous (`cp.async`). Blocks need as many times the shared memory.

    Args:
        stages: tiles of each shared tensor; 2 at least.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    stages: int
    nest: str = ""


@dataclass(frozen=True)
class BulkCopies(GpuStep):
    """Have a group of warps of its own copy shared tiles by Hopper's tensor memory accelerator (TMA).

    ::

        k:64 (P = A), k, m   -- BulkCopies(4) -->   k:64 (P[i % 4] = A)  beside  k:64, k, m

    Copying warps are up to `stages` tiles ahead; both kinds of warps wait for each other at barriers in
    shared memory, for a tile that is full or empty. This is for products by `TensorTile` with "wgmma", in
    place of `PipelineCopies`. Tiles are arranged as the instruction's widest swizzle has them. Both operands
    are read where they lie, so their rows begin at multiples of 16 bytes, and tiles of the reduction are
    whole ones of 16, 32 or 64 elements.

    Args:
        stages: tiles of each shared tensor; 2 at least.
        unfinished: iterations whose products may be unfinished when the next one begins: 0, or 1, for which a
            stage more is in use.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    stages: int
    unfinished: int = 0
    nest: str = ""


@dataclass(frozen=True)
class RasterOrder(GpuStep):
    """Number blocks in bands along the last axis of the result, so that the L2 cache serves more reads.

    Args:
        width: of a band, in blocks along the axis before the last one that has blocks.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    width: int
    nest: str = ""


@dataclass(frozen=True)
class LaunchBounds(GpuStep):
    """Have the compiler limit registers, so that a multiprocessor executes several blocks at the same time.

    Args:
        blocks: how many; CUDA's second number of `__launch_bounds__`. OpenCL has none, and ignores it.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    blocks: int
    nest: str = ""


@dataclass(frozen=True)
class TensorTile(GpuStep):
    """Compute a product of float16, bfloat16 or tf32 by tensor cores, in fragments of 16 x 8 x 16.

    ::

        m, n, k   -- TensorTile("m", "n", "k", 2, 4, 4, 4) -->   m:128 block, n:128 block, k, m:64, n:32 warps

    Sums are in float32. Fragments of tf32 are 16 x 8 x 8. Both operands need a `SharedTile`, with rows that
    begin at multiples of 8 elements, and `rows` and `columns` need no `BlockTile`.

    Args:
        rows: axis of the result that one operand has, with more than 8 elements.
        columns: axis of the result that the other operand has, with more than 6 elements.
        depth: axis of the reduction; its tiles (`ReduceTile`) are multiples of a fragment's, and several.
        row_warps: warps of a block along the rows.
        column_warps: warps of a block along the columns.
        row_fragments: fragments of a warp along the rows.
        column_fragments: fragments of a warp along the columns.
        instruction: "mma", by which a warp multiplies fragments in registers (`mma.sync`); or "wgmma", by
            which four warps multiply tiles in shared memory (sm_90a), but not of tf32. Then `row_warps` is a
            multiple of 4, and pads and swizzles of `SharedTile` are not used.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    rows: str
    columns: str
    depth: str
    row_warps: int = 1
    column_warps: int = 1
    row_fragments: int = 1
    column_fragments: int = 1
    instruction: str = "mma"
    nest: str = ""


GPU_STEPS: Mapping[str, type[Step]] = {
    step.__name__: step
    for step in (
        *(BlockTile, ReduceTile, SharedTile, PackOperand, VectorLanes, UnrollReduction, SplitReduction),
        *(PipelineCopies, BulkCopies, RasterOrder, LaunchBounds, TensorTile),
    )
}
