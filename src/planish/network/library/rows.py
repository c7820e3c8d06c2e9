"""Kernels on operands whose rows lie apart: the references of loop trees are moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from planish.core import Candidate, ScheduleError, Target
from planish.levels.loops.backends import tree_of
from planish.levels.loops.ir.schedule import plain_axis
from planish.levels.loops.ir.tree import Buffer, Call, Leaf, Loop, LoopTree, Node, Ref, Value, leaves
from planish.levels.loops.steps import Parallel, Vectorize
from planish.network.library.schedule import Schedule, schedule_for

Rows = Mapping[str, tuple[int, int]]
"""Buffer to the elements of a row, and those from the beginning of a row to that of the next one."""


def move_rows(schedule: Schedule, rows: Rows, target: Target) -> Schedule:
    """Compile a schedule for operands whose rows lie apart.

    Args:
        schedule: as if all operands were contiguous. Where it walks over the ends of rows, another one takes
            its place.
        rows: of the buffers that have such.
        target: of the schedule.
    """
    if not _keeps_rows(schedule.tree, rows):
        schedule = next(each for each in _others(schedule) if _keeps_rows(each.tree, rows))
    return schedule_for(replace(schedule, tree=_moved_tree(schedule.tree, rows)), target)


def _others(schedule: Schedule) -> Iterator[Schedule]:
    """Yield schedules that do not join axes: along the last axis of the result, and the program's own."""
    axes = [plain_axis(each) for each in schedule.program.statements[-1].target.index]
    vector = (Vectorize(axes[-1]),) if axes[-1] else ()
    shared = (Parallel(axes[0]),) if schedule.is_shared and axes[0] and len(axes) > 1 else ()
    for steps in dict.fromkeys([(*vector, *shared), vector, ()]):
        with suppress(ScheduleError):
            tree = tree_of(schedule.program, candidate := Candidate(steps))
            yield replace(schedule, candidate=candidate, tree=tree)


def _keeps_rows(tree: LoopTree, rows: Rows) -> bool:
    """Return whether what moves within a row stays there, and all else moves by whole rows."""
    found = [ref for leaf in leaves(tree.body) for ref in leaf.refs if ref.buffer in rows]
    return all(_keeps(tree, ref, rows[ref.buffer][0]) for ref in found)


def _keeps(tree: LoopTree, ref: Ref, row: int) -> bool:
    units = {axis: stride // step for (axis, step), stride in ref.strides}
    last = ref.offset % row
    for axis, unit in units.items():
        if 0 < unit < row:
            last += unit * (_extent(tree, axis) - 1)
        elif unit % row:
            return False
    return last < row


def _extent(tree: LoopTree, axis: str) -> int:
    terms = tree.window.get(axis)
    if terms is None:
        return tree.size[axis]
    return 1 + sum(abs(c) * (_extent(tree, other) - 1) for other, c in terms)


def _moved_tree(tree: LoopTree, rows: Rows) -> LoopTree:
    def node(each: Node) -> Node:
        if isinstance(each, Loop):
            return replace(each, body=tuple(map(node, each.body)))
        return Leaf(ref(each.target), each.reduce, value(each.value))

    def value(each: Value) -> Value:
        if isinstance(each, Call):
            return replace(each, args=tuple(map(value, each.args)))
        return ref(each) if isinstance(each, Ref) else each

    def ref(each: Ref) -> Ref:
        if each.buffer not in rows:
            return each
        row, step = rows[each.buffer]
        strides = tuple((loop, _moved(stride, row, step)) for loop, stride in each.strides)
        return Ref(each.buffer, _moved(each.offset, row, step), strides)

    def buffer(each: Buffer) -> Buffer:
        if each.name not in rows:
            return each
        row, step = rows[each.name]
        return replace(each, size=(each.size // row - 1) * step + row)

    return replace(tree, body=tuple(map(node, tree.body)), buffers=tuple(map(buffer, tree.buffers)))


def _moved(distance: int, row: int, step: int) -> int:
    """Return a distance in elements of dense rows as one in rows that begin `step` elements apart."""
    whole, rest = divmod(distance, row)
    return whole * step + rest
