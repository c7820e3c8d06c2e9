"""Layout of GPU kernels: what the steps of a schedule choose beside its loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from planish.levels.loops.ir.tree import LoopId

Bindings = Mapping[LoopId, str]
"""Loop to "block" or "thread"."""
FLAT_BLOCK_SIZE = 256
"""Threads of a block where nothing is bound."""


class TensorLoops(NamedTuple):
    """Loops of a nest that tensor cores compute; those of fragments alone are always there.

    Args:
        rows: over fragments, along the rows; None where a warp has one.
        columns: likewise, along the columns.
        depth: likewise, along the reduction.
        high: over the two halves of the rows.
        row: thread loop over the rows of a half.
        column: thread loop over pairs of columns.
        pair: over the two columns of a pair.
        inner: over the elements of the reduction.
        warp: thread loop over the four warps of a group, whose instruction multiplies; None for a warp's own.
        half: over the halves of the reduction, for a group.
    """

    rows: LoopId | None
    columns: LoopId | None
    depth: LoopId
    high: LoopId
    row: LoopId
    column: LoopId
    pair: LoopId
    inner: LoopId
    warp: LoopId | None = None
    half: LoopId | None = None


@dataclass(frozen=True)
class KernelOptions:
    """Choices for the kernel that computes one nest.

    Args:
        stages: of pipelined copies; 1 for none.
        raster: width of bands of blocks; 0 for row-major order.
        resident: blocks that a multiprocessor is to execute at the same time; 0 for any.
        tensor: loops that tensor cores compute; None for none.
        bulk: whether threads of their own copy shared tiles in boxes.
        unfinished: see `planish.levels.loops.gpu.kernels.Pipelined`.
    """

    stages: int = 1
    raster: int = 0
    resident: int = 0
    tensor: TensorLoops | None = None
    bulk: bool = False
    unfinished: int = 0


@dataclass(frozen=True)
class Layout:
    """Choices of how kernels are laid out.

    Args:
        block_size: threads of a block at most, where nothing is bound.
        pads: buffer of a copy to the elements that are left free after each row of its tile.
        swizzled: buffers of copies whose rows exchange chunks.
        lanes: innermost loops whose iterations are computed as one vector.
        unrolled: loops that are repeated instead of counted, besides those that registers take.
        kernels: tensor to the choices for the kernel that computes its nest.
    """

    block_size: int = FLAT_BLOCK_SIZE
    pads: Mapping[str, int] = field(default_factory=dict[str, int])
    swizzled: frozenset[str] = frozenset()
    lanes: frozenset[LoopId] = frozenset()
    unrolled: frozenset[LoopId] = frozenset()
    kernels: Mapping[str, KernelOptions] = field(default_factory=dict[str, KernelOptions])
