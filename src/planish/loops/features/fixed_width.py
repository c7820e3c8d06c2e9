"""Features of a candidate that are as wide for any other: the loops around its heaviest leaf, and totals."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING

from planish.core import FeatureSchema, Machine
from planish.loops.features.loop_rows import NAMES, Row, TreeRows, size_of_own_memory
from planish.loops.features.touching import WORK
from planish.loops.ir.annotated import AnnotatedTree, Vectors
from planish.loops.ir.schedule import Schedule
from planish.loops.lower.lowering import lower
from planish.loops.lower.physical import annotate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOOPS = 12
"""Loops that there is room for, from the innermost one outward; rows of 0 stand for missing ones."""

TOTALS = (
    "loops",  # of the tree
    "roots",  # nodes that are executed one after another, not inside a loop
    "path",  # loops around the heaviest leaf: more than have room, perhaps
    *[f"all {name}" for name in WORK],
    "all leaves",
    "bytes ahead",
    "bytes of temporaries",
)
SCHEMA = FeatureSchema(
    "loops/path", 1, (*TOTALS, *[f"{name} of loop {i}" for i in range(LOOPS) for name in NAMES])
)
"""The features of a candidate; loop 0 is the innermost."""


def features_of(schedules: Sequence[Schedule], vectors: Vectors, machine: Machine) -> NDArray[np.float32]:
    """Describe schedules; (schedules, width of `SCHEMA`).

    Args:
        schedules: of any programs.
        vectors: for which their trees are annotated.
        machine: whose caches count.
    """
    import numpy as np  # here: to import it takes long

    found = np.zeros((len(schedules), SCHEMA.width), np.float32)
    for number, schedule in enumerate(schedules):
        row = row_of(annotate(lower(schedule), vectors), machine)
        found[number, : len(row)] = row
    return found


def row_of(annotated: AnnotatedTree, machine: Machine) -> Row:
    """Describe an annotated tree: the first columns of `SCHEMA`; those that are left out are 0."""
    context = TreeRows(annotated, machine)
    visits = context.visits.visits
    path = context.visits.around(context.visits.heaviest)
    roots = [visit for visit in visits if visit.above < 0]
    work = [sum(amounts) for amounts in zip(*[visit.work for visit in roots], strict=True)] or [0] * len(WORK)
    totals = [*work, sum([visit.leaves for visit in roots]), *size_of_own_memory(annotated.tree)]
    row: Row = [float(len(visits)), float(len(annotated.tree.body)), float(len(path))]
    row += [log2(1 + total) for total in totals]
    # From the innermost outward: where there is no room, what is farthest from the work is left out.
    for number in path[:LOOPS]:
        row += context.row(visits[number])
    return row
