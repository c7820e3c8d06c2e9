"""The cursor's actions on plain tuples: what `CursorSpace` does, a hundred times as fast."""

from __future__ import annotations

from collections.abc import Sequence

from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.cursor import FACTORS, LOOPS_MAX

ACTIONS = 4 + len(FACTORS)
Loops = tuple[tuple[int, int], ...]
"""Number of the axis and step of each loop, outermost first."""
State = tuple[Loops, int]
"""The loops, and which of them the cursor is on."""


def axes_of(program: Program) -> list[str]:
    """Name the axes of the main nest in the order of its first loops; their numbers are places here."""
    schedule = unscheduled(program)
    return [axis for axis, _ in schedule.loops[schedule.graph.main]]


def begin(axes: int) -> State:
    """Give the unscheduled nest, with the cursor on its outermost loop."""
    return tuple((axis, 1) for axis in range(axes)), 0


def walked(extents: Sequence[int], actions: str) -> State:
    """Give where actions lead, each written as a digit, all of which are legal."""
    at = begin(len(extents))
    for action in actions:
        onward = after(at, int(action), extents)
        assert onward is not None, f"action {action} of {actions} is illegal"
        at = onward
    return at


def after(state: State, action: int, extents: Sequence[int]) -> State | None:
    """Give the state after an action; None where it is illegal.

    Args:
        state: before.
        action: up, down, swap up, swap down, and splits by `FACTORS`, from 0.
        extents: of the axes.
    """
    loops, at = state
    if action < 4:
        to = at + (-1, 1)[action % 2]
        if not 0 <= to < len(loops):
            return None
        return (loops, to) if action < 2 else _swapped(loops, at, to)
    return _split(loops, at, FACTORS[action - 4], extents)


def _swapped(loops: Loops, at: int, to: int) -> State | None:
    if loops[at][0] == loops[to][0]:
        return None
    low = min(at, to)
    return (*loops[:low], loops[low + 1], loops[low], *loops[low + 2 :]), to


def _split(loops: Loops, at: int, factor: int, extents: Sequence[int]) -> State | None:
    axis, step = loops[at][0], loops[at][1] * factor
    if step >= extents[axis] or len(loops) >= LOOPS_MAX:
        return None
    mine = [(place, size) for place, (other, size) in enumerate(loops) if other == axis]
    if any(size == step or max(size, step) % min(size, step) for _, size in mine):
        return None
    place = next(place for place, size in mine if size < step)
    return (*loops[:place], (axis, step), *loops[place:]), at
