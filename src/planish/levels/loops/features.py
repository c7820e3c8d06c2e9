"""Features of candidates, read from their schedules: no tree is made for them, and many are read at once.

They are AutoTVM's context features Z of the main nest (section 3.1 and appendix of its paper), and relation
features R (section 4): what is touched and moved by the outermost loops whose data a cache still holds.
Counts are given as log2(1 + x), and what is a share of the nest's work as log2(x). Of a loop tree they lack
what only lowering and a back end decide; reading them takes a thirtieth of the time, and models of them rank
no worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from planish.core import FeatureSchema, Machine
from planish.levels.loops.context import CONTEXT
from planish.levels.loops.ir.schedule import Graph, Schedule
from planish.levels.loops.lang.program import DTYPES, Access

# Nests as arrays

LOOPS = 12
"""Loops that there is room for, from the innermost one outward; missing ones have one iteration."""
SLOTS = 3
"""Tensors that there is room for: what is written, then the two that the nest reads first."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class TensorUse:
    """Accesses of a nest to a tensor.

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
        """Count the elements that are touched where a part of each axis is walked; axes come last."""
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
        slot_of = {access.tensor: slot for slot, access in reversed(list(enumerate(accesses)))}
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
                if pack.nest == graph.main and pack.tensor in slot_of:
                    packed[row, slot_of[pack.tensor]] = number[pack.at] if pack.at else len(loops)
                    ahead[row, slot_of[pack.tensor]] = pack.ahead
        reduced = np.array([*[name in nest.reduced for name in nest.axes], False])
        inside = _inside(size, axis, step)
        return NestTable(tensors, size, axis, step, inside, reduced[axis], kinds[0], kinds[1], packed, ahead)

    @property
    def work(self) -> float:
        """Iterations of the whole nest."""
        return prod(self.size.tolist())

    @property
    def here(self) -> Floats:
        """Return the part of its axis that each loop walks, (n, loops)."""
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


# Columns

ROLES = ("result", "loaded", "other")
"""The written tensor; then the reads that the innermost loop moves, loaded as vectors; then the others."""
HOLDERS = ("registers", "nearest cache", "second cache", "third cache")
OF_NEST = (
    "work",  # iterations of the innermost loop
    "elements of the result",
    "elements of the loaded",
    "elements of the other",
    "lanes",  # of a vector; no logarithm
    "loops",  # no logarithm
    "threads",  # 1 where they share the outermost loop
    "vector reduced",  # 1 where the innermost loop reduces
    "vector",  # iterations of the innermost loop
    "results in registers",  # elements that the innermost loops write around which the first loop reduces
    "registers of results",  # vectors of these
    "idle lanes",  # share of these vectors' lanes; no logarithm
    "loads",  # of vectors and single elements, for each operation on vectors; no logarithm
    "steps",  # iterations of the first loop that reduces
    "other nests",  # no logarithm
    "own loops",  # of the other nests; no logarithm
    "own copies",  # packed tiles of the other nests; no logarithm
    "staged",  # tensors that may not share loops; no logarithm
)
OF_SLOT = (
    "packed",  # 1 where it is copied
    "ahead",  # 1 where it is copied before the first call
    "tile",  # elements of its copy
    "copied",  # share of the work: elements that are copied
)
OF_HOLDER = (
    "iterations inside",  # of the outermost loop whose data it holds, all that is inside together
    *[f"moved of the {role}" for role in ROLES],  # bytes into it, as a share of the work
)
OF_LOOP = (
    "trips",  # iterations
    "tail",  # what is left for a shorter iteration, as a share; no logarithm
    "inside",  # iterations of the innermost loop in one execution: the bottom-up product
    "entries",  # how often it is executed: the top-down product
    "reduces",  # 1 where the result stays where it is
    "unrolled",
    "bytes",  # touched in one execution
    *[f"{what} of the {role}" for role in ROLES for what in ("touched", "run", "stride", "reuse")],
)
_BEFORE_LOOPS = (
    *OF_NEST,
    *[f"{name} of the {role}" for role in ROLES for name in OF_SLOT],
    *[f"{holder}: {name}" for holder in HOLDERS for name in OF_HOLDER],
)
FIRST_LOOP = len(_BEFORE_LOOPS)
"""Position of the innermost loop's first column."""
SCHEMA = FeatureSchema(
    "loops/schedule",
    2,
    (
        *_BEFORE_LOOPS,
        *[f"{name}, loop {i}" for i in range(LOOPS) for name in OF_LOOP],
        *CONTEXT,
    ),
)
"""Loop 0 is the innermost."""


# Features

NOTHING = 2.0**-40
"""A share of the work that stands for none."""

_USUAL_CACHES = (1 << 15, 1 << 20, 1 << 25)
"""Bytes of the caches of a target that does not state its own."""


def features_of(
    schedules: Sequence[Schedule], lanes: int, machine: Machine, context: Sequence[int]
) -> NDArray[np.float32]:
    """Describe schedules; (schedules, width of `SCHEMA`).

    Args:
        schedules: of any programs.
        lanes: elements of a vector register.
        machine: whose registers and caches count.
        context: the numbers of `CONTEXT`, as `planish.levels.loops.context.context_of` returns them.
    """
    found = np.zeros((len(schedules), SCHEMA.width), np.float32)
    groups: dict[Graph, list[int]] = {}
    for i, schedule in enumerate(schedules):
        groups.setdefault(schedule.graph, []).append(i)
    caches = [cache.size for cache in machine.caches] or list(_USUAL_CACHES)
    registers = machine.vector_bytes * machine.vector_registers
    sizes = [registers, *caches, *[caches[-1]] * len(HOLDERS)][: len(HOLDERS)]
    for numbers in groups.values():
        selected = [schedules[i] for i in numbers]
        columns = _Reading(NestTable.of(selected), lanes, sizes, _around(selected)).columns()
        found[numbers, : -len(CONTEXT)] = columns
    found[:, -len(CONTEXT) :] = _log(np.array(context, np.float64))
    return found


def _around(schedules: Sequence[Schedule]) -> Floats:
    """Count what the other nests have."""
    main, nests = schedules[0].graph.main, len(schedules[0].graph.nests)
    found = [
        (
            len(schedule.loops[main]),
            nests - 1,
            sum([len(order) for i, order in enumerate(schedule.orders) if order is not None and i != main]),
            sum([pack.nest != main for pack in schedule.packs]),
            len(schedule.staged),
        )
        for schedule in schedules
    ]
    return np.array(found, np.float64)


class _Reading:
    """Reads the columns off a table; arrays are (n, loops) and (n, slots, loops)."""

    def __init__(self, table: NestTable, lanes: int, sizes: Sequence[int], around: Floats) -> None:
        self.table, self.lanes, self.sizes, self.around = table, lanes, sizes, around
        count = len(table.axis)
        self.trips = np.ceil(table.here / table.step)
        self.total: Floats = np.multiply.reduce(table.inside, axis=2)
        # A loop is entered as often as all loops outside it iterate: the product without its own.
        outside = np.multiply.accumulate(self.trips[:, ::-1], axis=1)[:, ::-1]
        self.entries = np.concatenate([outside[:, 1:], np.ones((count, 1))], axis=1)
        shape = count, SLOTS, LOOPS
        self.touched, self.run, self.stride = np.ones(shape), np.ones(shape), np.zeros(shape)
        self.bytes, self.packed, self.ahead = np.zeros(shape), np.full(shape[:2], -1.0), np.zeros(shape[:2])
        for slot, tensor in enumerate(table.tensors):
            self.touched[:, slot], self.run[:, slot] = tensor.touched(table.inside), tensor.run(table.inside)
            self.stride[:, slot] = tensor.strides[table.axis] * table.step
            self.bytes[:, slot] = self.touched[:, slot] * tensor.itemsize
            self.packed[:, slot], self.ahead[:, slot] = table.packed[:, slot], table.ahead[:, slot]
        self._by_role()
        self.moved = self.stride > 0
        # Strides of a copy, in its loops' order: each moves by what those inside it touch.
        within = np.arange(LOOPS) < self.packed[:, :, None]
        body = np.concatenate([np.ones((*self.touched.shape[:2], 1)), self.touched[:, :, :-1]], axis=2)
        self.stride = np.where(within & self.moved, body, self.stride)
        self.run = np.where(within, self.touched, self.run)

    def _by_role(self) -> None:
        """Put what the innermost loop moves before the other that is read."""
        turned = (self.stride[:, 1, 0] == 0) & (self.stride[:, 2, 0] > 0)
        order = np.where(turned[:, None], (0, 2, 1), (0, 1, 2))
        for name in ("touched", "run", "stride", "bytes"):
            setattr(self, name, np.take_along_axis(getattr(self, name), order[:, :, None], 1))
        self.packed = np.take_along_axis(self.packed, order, 1)
        self.ahead = np.take_along_axis(self.ahead, order, 1)

    def columns(self) -> Floats:
        return np.concatenate([self._nest(), self._slots(), self._holders(), self._loops()], axis=1)

    def _nest(self) -> Floats:
        table, rows = self.table, np.arange(len(self.trips))
        # What is inside the first loop that reduces is the register tile: its results stay through all of
        # that loop.
        first = np.where(table.reduces.any(axis=1), table.reduces.argmax(axis=1), LOOPS - 1)
        below = np.maximum(first - 1, 0)
        alone = (first == 0)[:, None]
        tile = np.where(alone, 1.0, self.touched[rows, :, below])  # of each slot, where the first loop begins
        vector = self.trips[:, 0]
        vectors = np.ceil(vector / self.lanes)
        moved = self.moved[:, :, 0]
        registers = np.where(moved, tile / np.where(moved, vector[:, None], 1) * vectors[:, None], tile)
        registers = np.maximum(registers, 1.0)
        operations = np.maximum(np.where(alone[:, 0], 1.0, self.total[rows, below]) / vector * vectors, 1.0)
        held = registers[:, 0]
        # Of a vector that is summed, one lane is left.
        idle = np.where(moved[:, 0], 1 - tile[:, 0] / (held * self.lanes), 1 - 1 / self.lanes)
        found = [
            _log(np.full(len(rows), table.work)),
            *_log(self.touched[:, :, -1]).T,
            np.full(len(rows), self.lanes),
            self.around[:, 0],
            table.parallel.any(axis=1),
            table.reduces[:, 0],
            _log(vector),
            _log(tile[:, 0]),
            _log(held),
            idle,
            (registers[:, 1] + registers[:, 2]) / operations,
            _log(self.trips[rows, first]),
            *self.around[:, 1:].T,
        ]
        return np.stack(found, axis=1).astype(np.float64)

    def _slots(self) -> Floats:
        """Describe each slot's copy, where there is one."""
        packed = self.packed >= 0
        inner = np.clip(self.packed - 1, 0, LOOPS - 1).astype(np.intp)
        tile = np.take_along_axis(self.touched, inner[:, :, None], 2)[:, :, 0]
        entries = np.take_along_axis(self.entries, inner, 1)
        share = _share(tile * entries / self.table.work) * (packed & (self.ahead == 0))
        columns = [packed, self.ahead, _log(tile) * packed, share]
        return np.stack(columns, axis=2).reshape(len(packed), -1).astype(np.float64)

    def _holders(self) -> Floats:
        total = self.bytes.sum(axis=1)
        found: list[Floats] = []
        for size in self.sizes:
            level = (total <= size).sum(axis=1) - 1  # the outermost that it holds; -1 where not even one
            at = np.maximum(level, 0)
            rows = np.arange(len(at))
            inside = np.where(level < 0, 1.0, self.total[rows, at])
            times = np.tile((self.entries[rows, at])[:, None], (1, SLOTS))
            still = np.ones(times.shape, bool)
            for loop in range(1, LOOPS):
                # What the loops around do not move stays where it is.
                beyond = (loop > at)[:, None]
                still &= ~(beyond & self.moved[:, :, loop])
                times = np.where(beyond & still, times / self.trips[:, loop, None], times)
            moved = self.bytes[rows, :, at] * times / self.table.work
            found += [_log(inside)[:, None], _share(moved)]
        return np.concatenate(found, axis=1)

    def _loops(self) -> Floats:
        table = self.table
        here, reuse = table.here, self.total[:, None] / self.touched
        tensors = np.stack([_log(self.touched), _log(self.run), _log(self.stride), _log(reuse)], axis=2)
        columns = [
            _log(self.trips),
            (here % table.step) / here,
            _log(self.total),
            _log(self.entries),
            table.reduces,
            table.unrolled,
            _log(self.bytes.sum(axis=1)),
            *np.moveaxis(tensors, 3, 0).reshape(LOOPS, len(here), -1).transpose(2, 1, 0),
        ]
        return np.stack(columns, axis=2).reshape(len(here), -1).astype(np.float64)


def _log(x: Floats) -> Floats:
    return np.log2(1 + x)


def _share(x: Floats) -> Floats:
    return np.log2(np.maximum(x, NOTHING))
