"""Bulk copies: boxes of tensors that Hopper's tensor memory accelerator copies for products of warp groups.

A box has two dimensions, a tile's rows and columns. Its elements are arranged in shared memory as the widest
swizzle has them that a row fills, of 32, 64 or 128 bytes, which both the accelerator and `wgmma` know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from planish.core import ScheduleError
from planish.levels.loops.gpu.devices import REGISTERS
from planish.levels.loops.gpu.kernels import (
    ALIGNED_BYTES,
    Arrangement,
    Barrier,
    Box,
    Compute,
    Dimension,
    GpuKernel,
    Item,
    Mma,
    Pipelined,
    Serial,
    boxes,
    computations,
)
from planish.levels.loops.gpu.tensor import FRAGMENT_COLUMNS, GROUP, is_transposed
from planish.levels.loops.ir.tree import Ref

COPYING = 128
"""Threads that copy: a group of warps, which leaves its registers to the others."""
BOX_BYTES = 1024
"""Bytes at whose multiples tiles begin, so that swizzles begin with their first row."""
PANEL = 64
"""Elements of 2 bytes in a row of the widest swizzle."""
_MOST_REGISTERS = 240
"""Of a thread that others leave theirs."""
_BESIDE_SUMS = 26
"""Registers that ptxas demands for such an instruction, beside 4 for each column of fragments."""
_MOST_BOX, _MOST_DIMENSIONS = 256, 5
"""Elements of a box along a dimension, and dimensions of a tensor, at most."""
_HINT = "Use PipelineCopies."


def box_of(
    source: Ref,
    target: str,
    sizes: Mapping[str, int],
    extents: Mapping[str, int],
    windows: frozenset[str],
    itemsize: int,
) -> Box:
    """Describe a copy from global memory as that of a box.

    Args:
        source: what is read.
        target: buffer that is written.
        sizes: axis to the elements of a box.
        extents: axis to all elements.
        windows: axes that follow others, as those of padded convolutions.
        itemsize: bytes of an element.

    Raises:
        ScheduleError: it is not a box.
    """
    units: dict[str, set[int]] = {}
    for (axis, step), stride in source.strides:
        units.setdefault(axis, set()).add(stride // step)
    axes = sorted(units, key=lambda axis: min(units[axis]))
    strides = [min(units[axis]) for axis in axes]
    chunk = ALIGNED_BYTES // itemsize
    plain = source.offset == 0 and not windows & {*axes} and all(len(each) == 1 for each in units.values())
    if not plain or len(axes) > _MOST_DIMENSIONS or strides[:1] != [1] or any(s % chunk for s in strides[1:]):
        what = f"'{source.buffer}' has no rows that begin at multiples of {ALIGNED_BYTES} bytes"
        raise ScheduleError(what, _HINT)
    wide = [d for d, axis in enumerate(axes) if sizes[axis] > 1]
    if len(wide) != 2 or wide[0] != 0 or any(sizes[axis] > _MOST_BOX for axis in axes[1:]):
        what = f"a tile of '{source.buffer}' is not a box of neighboring elements and up to {_MOST_BOX} rows"
        raise ScheduleError(what, _HINT)
    dimensions = tuple(
        Dimension(
            extents[axis],
            stride,
            sizes[axis],
            tuple(
                (loop, loop[1]) for loop, _ in source.strides if loop[0] == axis and loop[1] >= sizes[axis]
            ),
        )
        for axis, stride in zip(axes, strides, strict=True)
    )
    return Box(source.buffer, target, dimensions, wide[1])


def arranged_in_boxes(item: Mma, ref: Ref, row: int) -> Arrangement:
    """Return the order of the elements of an operand's tile.

    Args:
        item: the product.
        ref: the operand.
        row: elements of a row of the tile.

    Raises:
        ScheduleError: the instruction has no such tiles.
    """
    along = is_transposed(item, ref)
    panel = min(row, PANEL)
    arranged = Arrangement.of(panel, 2)
    whole = row == panel or (along and row % PANEL == 0)
    # An instruction's columns begin with a panel, or all are in one.
    columns = FRAGMENT_COLUMNS * (item.columns[0][1] if item.columns else 1)
    apart = along and item.row not in ref.stride and row > panel and columns % PANEL and columns < row
    if arranged is None or not whole or apart:
        what = f"rows of {row} elements of '{ref.buffer.partition('.')[0]}' are not a tile for '{GROUP}'"
        raise ScheduleError(what, "Use 16, 32 or 64 elements, or across the reduction a multiple of 64.")
    if row == panel:
        return arranged
    rows = prod(n for _, n in (*item.depth, *item.inner))
    return Arrangement(arranged.low, arranged.bits, arranged.shift, panel, row, rows)


def require_alone(items: Sequence[Item], arranged: Mapping[str, Arrangement]) -> None:
    """Refuse bulk copies in a kernel whose threads meet elsewhere, too; raises ScheduleError."""
    loops = [item for item in items if isinstance(item, Pipelined)]
    shared = [item for item in items if isinstance(item, Barrier)]
    if len(loops) != 1 or shared or any(_holds_copies(item) for item in items if item is not loops[0]):
        what = "bulk copies are for kernels with a single loop of whole tiles"
        raise ScheduleError(what, "Use PipelineCopies, or tiles that divide the reduction.")
    for box in boxes(loops[0].copies):
        if box.dimensions[0].box % arranged[box.target].multiple:
            raise ScheduleError(f"tiles of '{box.source}' are cut off within a row", _HINT)


def _holds_copies(item: Item) -> bool:
    if isinstance(item, Serial):
        return any(map(_holds_copies, item.body))
    return not isinstance(item, Compute)


def registers_of(kernel: GpuKernel) -> tuple[int, int] | None:
    """Return the registers of a copying thread and of another one; None where they stay as they are.

    Several groups of warps that multiply get what copying threads leave. A kernel is launched with an equal
    share for all.
    """
    groups = kernel.block_size // COPYING
    if groups < 2 or kernel.resident > 1:
        return None
    share = REGISTERS // kernel.launched // 8 * 8
    few = {2: 40, 3: 32}.get(groups, 24)
    return few, min(_MOST_REGISTERS, (share + (share - few) // groups) // 8 * 8)


def require_registers(kernel: GpuKernel) -> None:
    """Refuse products of groups of warps whose sums are more than a thread's registers; ScheduleError."""
    columns = [
        prod(n for _, n in m.columns) for m in computations(kernel.body) if isinstance(m, Mma) and m.warp
    ]
    if not columns:
        return
    needed = 4 * max(columns) + _BESIDE_SUMS
    more = registers_of(kernel) if kernel.copying else None
    threads = kernel.launched * max(1, kernel.resident)
    left = more[1] if more else min(_MOST_REGISTERS, REGISTERS // threads // 8 * 8)
    if needed > left:
        what = (
            f"an instruction of {max(columns)} columns of fragments needs {needed} registers, and {threads}"
        )
        raise ScheduleError(
            f"{what} threads leave {left} to each", "Use fewer columns, warps or LaunchBounds."
        )


# Functions of CUDA

MAPS = "struct __align__(64) p_map { unsigned long long words[16]; };"
"""The driver's description of a tensor, which is an argument of a kernel."""
BULK_FUNCTIONS: Mapping[str, str] = {
    "p_barrier": """static __device__ __forceinline__ uint p_in_shared(const void *p)
{
  return (uint)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void p_barrier(unsigned long long *barrier, int count)
{
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(p_in_shared(barrier)), "r"(count) : "memory");
}

static __device__ __forceinline__ void p_barriers_made()
{
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ __forceinline__ void p_await(unsigned long long *barrier, uint parity)
{
  uint done;
  do {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
      "selp.u32 %0, 1, 0, p; }"
      : "=r"(done) : "r"(p_in_shared(barrier)), "r"(parity) : "memory");
  } while (!done);
}

static __device__ __forceinline__ void p_expect(unsigned long long *barrier, uint bytes)
{
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
    :: "r"(p_in_shared(barrier)), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void p_arrive(unsigned long long *barrier)
{
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(p_in_shared(barrier)) : "memory");
}"""
}
"""Barriers in shared memory, at which copying threads and others wait for each other."""


def box_function(rank: int) -> str:
    """Return the function that has the accelerator copy a box of a tensor with a number of dimensions."""
    parameters = ", ".join(f"int c{d}" for d in range(rank))
    places = ", ".join(f"%{2 + d}" for d in range(rank))
    values = ", ".join(f'"r"(c{d})' for d in range(rank))
    return f"""static __device__ __forceinline__ void p_box_{rank}(
  void *to, const p_map *map, {parameters}, unsigned long long *barrier)
{{
  asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
    "[%0], [%1, {{{places}}}], [%{2 + rank}];"
    :: "r"(p_in_shared(to)), "l"((unsigned long long)map), {values}, "r"(p_in_shared(barrier)) : "memory");
}}"""
