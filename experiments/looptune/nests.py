"""Observations of many nests of one program at once, and what a cost model reads of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from loop_orders import Loops, axes_of
from numpy.typing import NDArray
from programs import cursor_space

from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import BINS, DATA, EDGES, LOOPS_MAX, OBSERVED, moves_of

LANES = 16
"""Of a vector of float32 in AVX-512."""
REGISTERS = (16, 24, 28, 30)
"""How many of them a tile of results may want; the machine has 32."""
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Nests:
    """Loop orders of one program.

    Args:
        program: whose main nest has them.
        axes: its axes, in the order of the unscheduled nest.
        axis: (nests, `LOOPS_MAX`), the place of each loop's axis, outermost first; -1 where there is no loop.
        step: of the same shape, its step.
    """

    program: Program
    axes: Sequence[str]
    axis: Ints
    step: Ints


def nests_of(program: Program, orders: Sequence[Loops]) -> Nests:
    """Gather loop orders of a program."""
    axis = np.full((len(orders), LOOPS_MAX), -1, np.int64)
    step = np.ones(axis.shape, np.int64)
    for row, order in enumerate(orders):
        for place, loop in enumerate(order):
            axis[row, place], step[row, place] = loop
    return Nests(program, axes_of(program), axis, step)


def trips(nests: Nests) -> tuple[Ints, Ints]:
    """Give each loop's whole iterations and what they leave, in the first execution; else 0."""
    rows = np.arange(len(nests.axis))
    left = np.tile([nests.program.size[name] for name in nests.axes], (len(rows), 1))
    size, tail = np.zeros(nests.axis.shape, np.int64), np.zeros(nests.axis.shape, np.int64)
    for place in range(LOOPS_MAX):
        there, step = nests.axis[:, place] >= 0, nests.step[:, place]
        before = left[rows, nests.axis[:, place]]
        size[:, place], tail[:, place] = (before // step) * there, (before % step) * there
        left[rows, nests.axis[:, place]] = np.where(there, np.minimum(step, before), before)
    return size, tail


def observed(nests: Nests, cursor: Ints) -> Ints:
    """Give what `CursorSpace.observe` does, for nests with the cursor on a loop of each."""
    size, tail = trips(nests)
    there = nests.axis >= 0
    moves = _moves(nests)[nests.axis] * nests.step[..., None] * there[..., None]
    seen = np.zeros((*nests.axis.shape, OBSERVED.width), np.int64)
    seen[..., 1], seen[..., 2], seen[..., 3] = size, tail, there
    seen[np.arange(len(seen)), cursor, 0] = 1
    bins = np.minimum(np.ceil(np.log2(np.maximum(moves, 1))).astype(np.int64), BINS - 1)
    for each in range(moves.shape[-1]):
        rows, places = np.nonzero(moves[..., each])
        seen[rows, places, 4 + bins[rows, places, each]] += 1
    seen[..., EDGES : EDGES + DATA] = moves[..., :DATA]
    seen[there, EDGES + DATA :] = cursor_space(nests.program).context
    return seen


def described(nests: Nests) -> NDArray[np.float32]:
    """Give a cost model's features: loops from the innermost on, and what lies inside each."""
    size, tail = trips(nests)
    count = (nests.axis >= 0).sum(axis=1)[:, None]
    places = count - 1 - np.arange(LOOPS_MAX)
    there, places = places >= 0, np.maximum(places, 0)
    axis, step, size, tail = (
        np.take_along_axis(each, places, axis=1) for each in (nests.axis, nests.step, size, tail)
    )
    moves = _moves(nests)[axis][..., :DATA]
    whole = np.where(there, size + (tail > 0), 1).astype(np.float32)
    logs = np.log2(np.maximum(whole, 1))
    tiles = _tiles(nests, axis, whole, there)
    columns = [
        there, _log(size), _log(tail), tail > 0, _log(step), np.cumsum(logs, axis=1), size % 4 == 0,
        size % LANES == 0, *np.moveaxis(np.cumsum(logs[..., None] * (moves > 0), axis=1), -1, 0),
        *np.moveaxis(_log(moves * step[..., None]), -1, 0), *np.moveaxis(moves == 1, -1, 0),
        *np.moveaxis(moves > 0, -1, 0), *tiles, *(tiles[0] <= np.log2(most) for most in REGISTERS),
    ]  # fmt: skip
    return (np.stack(columns, axis=-1).astype(np.float32) * there[..., None]).reshape(len(axis), -1)


def _tiles(
    nests: Nests, axis: Ints, whole: NDArray[np.float32], there: NDArray[np.bool_]
) -> list[NDArray[np.float32]]:
    """Give of each tensor how many vectors hold what the loops up to each one touch, as logarithms."""
    rows, moves = np.arange(len(axis)), _moves(nests)
    cover = np.ones((len(axis), len(nests.axes)), np.float32)
    inner = axis[:, :1] == np.arange(len(nests.axes))
    found = list[list[NDArray[np.float32]]]()
    for place in range(LOOPS_MAX):
        cover[rows, axis[:, place]] *= np.where(there[:, place], whole[:, place], 1)
        vectors = np.log2(np.where(inner, np.ceil(cover / LANES), cover))
        found.append([vectors @ (moves[:, each] > 0) for each in range(moves.shape[1])][:3])
    return [np.stack(of, axis=1) for of in zip(*found, strict=True)]


def _moves(nests: Nests) -> Ints:
    """Give by how many elements each axis moves each access; (axes, accesses), `DATA` of them at least."""
    schedule = unscheduled(nests.program)
    nest = schedule.graph.nests[schedule.graph.main]
    moves = [list(moves_of(schedule, nest, axis)) for axis in nests.axes]
    return np.array([row + [0] * (DATA - len(row)) for row in moves])


def _log(values: Ints) -> NDArray[np.float32]:
    return np.log2(1 + values.astype(np.float32))
