"""What LoopTune's agent sees of a schedule: twenty integers for each loop, and a graph's edges (3.6.4).

The graph of figure 3.9 has loops, data and computations. Here the loops are rows in the order of nesting (its
black edges), data are columns, what is written before what is read (blue edges), and a stride stands where a
loop moves an access (red edges). The histogram of figure 3.10 tells how many accesses a loop moves so far,
but not which: those of a matmul's m and of a transposed one's k look alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from planish.core import FeatureSchema
from planish.loops.ir.graph import Nest
from planish.loops.ir.schedule import Order, Schedule
from planish.loops.lang.program import Access, accesses

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BINS = 16
"""Of the histogram of strides: bin N has those above 2**(N-1), up to 2**N; the last one all that are more."""

DATA = 4
"""Accesses of a statement that have columns of their own: what is written, and the first that are read."""

OBSERVED = FeatureSchema(
    "loops/cursor",
    2,
    (
        "cursor",  # 1 where the cursor is on the loop
        "size",  # whole iterations of its first execution
        "tail",  # elements that are left for a last, shorter iteration
        "computes",  # 1 for a loop of the nest that the cursor walks, 0 for one of another nest
        *(f"stride {2**n}" for n in range(BINS)),  # accesses that an iteration moves so many elements
        "moves written",  # by so many elements an iteration moves what is written
        *(f"moves read {n}" for n in range(1, DATA)),  # the same for what is read
    ),
)
"""The thesis' row, and the edges of its graph.

Its write-back nest is our other nests: they fill the rows that the main nest leaves.
"""
EDGES = 4 + BINS
"""The first column of the graph's edges."""


def observe(schedule: Schedule, cursor: int, rows: int) -> NDArray[np.int64]:
    """Describe a schedule and the cursor on its main nest.

    Args:
        schedule: what the agent has made.
        cursor: the place of its loop.
        rows: how many loops are described at most; rows that are left are zeros.

    Returns:
        (rows, 24): the main nest's loops, outermost first, then those of the other nests.
    """
    import numpy as np

    seen = np.zeros((rows, OBSERVED.width), np.int64)
    main = schedule.graph.main
    others = (number for number in range(len(schedule.graph.nests)) if number != main)
    row = 0
    for number in (main, *others):
        nest, order = schedule.graph.nests[number], schedule.loops[number]
        moves = {axis: [*moves_of(schedule, nest, axis)] for axis in {axis for axis, _ in order}}
        for place, (size, tail) in enumerate(_trips(schedule, order)):
            if row == rows:
                return seen
            axis, step = order[place]
            seen[row, :4] = (number == main and place == cursor, size, tail, number == main)
            for column, moved in enumerate(moves[axis]):
                if moved:
                    # The bit length of n - 1 is the logarithm rounded up: bin N ends at 2 ** N.
                    seen[row, 4 + min((moved * step - 1).bit_length(), BINS - 1)] += 1
                if column < DATA:
                    seen[row, EDGES + column] = moved * step
            row += 1
    return seen


def _trips(schedule: Schedule, order: Order) -> Iterator[tuple[int, int]]:
    """Give each loop's whole iterations and what they leave, in the first execution."""
    left = dict(schedule.program.size)
    for axis, step in order:
        yield divmod(left[axis], step)
        left[axis] = min(step, left[axis])


def moves_of(schedule: Schedule, nest: Nest, axis: str) -> Iterator[int]:
    """Give by how many elements each access of a statement moves with an axis, the written one first."""
    for access in (nest.statement.target, *accesses(nest.statement.value)):
        yield _moved(schedule, access, axis)


def _moved(schedule: Schedule, access: Access, axis: str) -> int:
    if access.tensor not in schedule.program.type:
        return 0  # a position is no memory
    strides = schedule.program.type[access.tensor].strides()
    terms = ((stride, dict(index.terms)) for stride, index in zip(strides, access.index, strict=True))
    return sum(stride * of.get(axis, 0) for stride, of in terms)
