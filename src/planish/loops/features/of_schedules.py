"""Features that are read from schedules alone: no tree is made for them, and many are read at once.

Of a loop tree they lack what only lowering and a back end decide; reading them takes a thirtieth of the time,
and models of them rank no worse.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planish.core import Machine
from planish.loops.features.nest_table import LOOPS, SLOTS, Floats, NestTable
from planish.loops.features.schedule_columns import HOLDERS, SCHEMA
from planish.loops.ir.graph import Graph
from planish.loops.ir.schedule import Schedule

NOTHING = 2.0**-40
"""A share of the work that stands for none."""

_USUAL_CACHES = (1 << 15, 1 << 20, 1 << 25)
"""Bytes of the caches of a target that does not tell its own."""


def features_of(schedules: Sequence[Schedule], lanes: int, machine: Machine) -> NDArray[np.float32]:
    """Describe schedules; (schedules, width of `SCHEMA`).

    Args:
        schedules: of any programs.
        lanes: elements of a vector register.
        machine: whose registers and caches count.
    """
    found = np.zeros((len(schedules), SCHEMA.width), np.float32)
    groups: dict[Graph, list[int]] = {}
    for i, schedule in enumerate(schedules):
        groups.setdefault(schedule.graph, []).append(i)
    caches = [cache.size for cache in machine.caches] or list(_USUAL_CACHES)
    registers = machine.vector_bytes * machine.vector_registers
    sizes = [registers, *caches, *[caches[-1]] * len(HOLDERS)][: len(HOLDERS)]
    for numbers in groups.values():
        mine = [schedules[i] for i in numbers]
        found[numbers] = _Reading(NestTable.of(mine), lanes, sizes, _around(mine)).columns()
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
        self._packed_strides()

    def _by_role(self) -> None:
        """Put what the innermost loop moves before the other that is read."""
        turned = (self.stride[:, 1, 0] == 0) & (self.stride[:, 2, 0] > 0)
        order = np.where(turned[:, None], (0, 2, 1), (0, 1, 2))
        for name in ("touched", "run", "stride", "bytes"):
            setattr(self, name, np.take_along_axis(getattr(self, name), order[:, :, None], 1))
        self.packed = np.take_along_axis(self.packed, order, 1)
        self.ahead = np.take_along_axis(self.ahead, order, 1)

    def _packed_strides(self) -> None:
        """A copy lies as its loops walk it: each moves by what those inside it touch."""
        within = np.arange(LOOPS) < self.packed[:, :, None]
        body = np.concatenate([np.ones((*self.touched.shape[:2], 1)), self.touched[:, :, :-1]], axis=2)
        self.stride = np.where(within & self.moved, body, self.stride)
        self.run = np.where(within, self.touched, self.run)

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
        """Tell of each slot's copy, where there is one."""
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
