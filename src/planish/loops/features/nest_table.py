"""The main nests of many schedules as arrays: loops, what remains of each axis inside them, packed tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from planish.loops.ir.graph import Graph
from planish.loops.ir.schedule import Schedule
from planish.loops.lang.program import DTYPES, Access

LOOPS = 12
"""Loops that there is room for, from the innermost one outward; missing ones have one iteration."""
SLOTS = 3
"""Tensors that there is room for: what is written, then the two that the nest reads first."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class TensorUse:
    """How a nest touches a tensor.

    Args:
        itemsize: bytes of an element.
        shape: extents.
        strides: (axes,), elements of memory for each step of an axis.
        windows: for each dimension (axes,), by how much each axis moves its subscript.
    """

    itemsize: int
    shape: tuple[int, ...]
    strides: Floats
    windows: tuple[Floats, ...]

    @staticmethod
    def of(graph: Graph, access: Access, axes: dict[str, int]) -> TensorUse:
        """Read an access; the last of the axes stands for missing loops."""
        kind = graph.program.type[access.tensor]
        windows = tuple([np.zeros(len(axes) + 1) for _ in kind.shape])
        for window, index in zip(windows, access.index, strict=True):
            for axis, times in index.terms:
                if axis in axes:
                    window[axes[axis]] = times
        strides = sum([w * s for w, s in zip(windows, kind.strides(), strict=True)], np.zeros(len(axes) + 1))
        return TensorUse(DTYPES[kind.dtype], kind.shape, strides, windows)

    def touched(self, inside: Floats) -> Floats:
        """Count the elements that are touched where so much of each axis is walked; axes come last."""
        found = np.ones(inside.shape[:-1])
        for extent, window in zip(self.shape, self.windows, strict=True):
            # A window of several axes touches from its first element to its last, and no more than the tensor
            # has.
            found *= np.minimum(extent, 1 + (inside - 1) @ window)
        return found

    def run(self, inside: Floats) -> Floats:
        """Count the elements that lie in sequence, along the last dimension."""
        if not self.shape:
            return np.ones(inside.shape[:-1])
        return np.minimum(self.shape[-1], 1 + (inside - 1) @ self.windows[-1])


@dataclass(frozen=True)
class NestTable:
    """The main nests of schedules of one program; loops are numbered from the innermost one outward.

    Args:
        tensors: at most `SLOTS`.
        size: (axes,), extents; the last axis stands for missing loops.
        axis: (n, loops), number of the axis of each loop.
        step: (n, loops), elements of the axis in an iteration.
        inside: (n, loops, axes), what is walked of each axis in one execution of the loop.
        reduces: (n, loops), whether the nest's result stays where it is.
        unrolled: (n, loops).
        parallel: (n, loops).
        packed: (n, tensors), how many of the loops are inside the tensor's copy; -1 where it is not packed.
        ahead: (n, tensors), whether the copy is made before the first call.
    """

    tensors: tuple[TensorUse, ...]
    size: Floats
    axis: NDArray[np.intp]
    step: Floats
    inside: Floats
    reduces: Flags
    unrolled: Flags
    parallel: Flags
    packed: NDArray[np.intp]
    ahead: Flags

    @staticmethod
    def of(schedules: Sequence[Schedule]) -> NestTable:
        """Write schedules of one graph down."""
        graph = schedules[0].graph
        nest = graph.nests[graph.main]
        axes = {axis: i for i, axis in enumerate(nest.axes)}
        accesses = [nest.statement.target, *[operand.access for operand in nest.operands]][:SLOTS]
        tensors = tuple([TensorUse.of(graph, access, axes) for access in accesses])
        size = np.array([*[graph.program.size[axis] for axis in nest.axes], 1], np.float64)
        shape = len(schedules), LOOPS
        axis, step = np.full(shape, len(axes)), np.ones(shape)
        kinds = np.zeros((2, *shape), bool)
        packed, ahead = np.full((shape[0], len(tensors)), -1), np.zeros((shape[0], len(tensors)), bool)
        # Reversed, so that of a tensor that is read twice the first slot stays.
        place = {access.tensor: slot for slot, access in reversed(list(enumerate(accesses)))}
        for row, schedule in enumerate(schedules):
            loops = schedule.loops[graph.main][::-1]
            number = {loop: i for i, loop in enumerate(loops)}
            kept = loops[:LOOPS]
            axis[row, : len(kept)] = [axes[loop[0]] for loop in kept]
            step[row, : len(kept)] = [loop[1] for loop in kept]
            for kind, marked in enumerate((schedule.unrolled, schedule.parallel)):
                for owner, loop in marked:
                    if owner == graph.main and number.get(loop, LOOPS) < LOOPS:
                        kinds[kind, row, number[loop]] = True
            for pack in schedule.packs:
                if pack.nest == graph.main and pack.tensor in place:
                    packed[row, place[pack.tensor]] = number[pack.at] if pack.at else len(loops)
                    ahead[row, place[pack.tensor]] = pack.ahead
        reduced = np.array([*[name in nest.reduced for name in nest.axes], False])
        inside = _inside(size, axis, step)
        return NestTable(tensors, size, axis, step, inside, reduced[axis], kinds[0], kinds[1], packed, ahead)

    @property
    def work(self) -> float:
        """Iterations of the whole nest."""
        return prod(self.size.tolist())

    @property
    def here(self) -> Floats:
        """What each loop walks of its axis, (n, loops)."""
        return np.take_along_axis(self.inside, self.axis[:, :, None], 2)[:, :, 0]


def _inside(size: Floats, axis: NDArray[np.intp], step: Floats) -> Floats:
    left = np.tile(size, (len(axis), 1))
    found = np.empty((*axis.shape, len(size)))
    rows = np.arange(len(axis))
    # From outside inward: what a loop leaves of an axis is what those inside it walk.
    for loop in range(LOOPS - 1, -1, -1):
        found[:, loop] = left
        left[rows, axis[:, loop]] = np.minimum(left[rows, axis[:, loop]], step[:, loop])
    return found
