"""Random legal schedules of the `loops` level, to fuzz what lowers, compiles and runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from planish.core.errors import ScheduleError
from planish.levels.loops.ir.schedule import Nest, Schedule, loop_text, unscheduled
from planish.levels.loops.lang.program import Program
from planish.levels.loops.steps import (
    Fuse,
    LoopStep,
    Merge,
    Pack,
    Parallel,
    Reorder,
    Split,
    Stage,
    Swap,
    Unroll,
    Vectorize,
    fusable,
)

_Make = Callable[[st.DrawFn, Nest, Sequence[str]], LoopStep]

FACTORS = (2, 3, 4, 5, 6, 8, 12, 16, 17, 32)


@st.composite
def schedules(draw: st.DrawFn, program: Program, most: int = 12) -> Schedule:
    """Draw a schedule of a program: random steps on any of its nests, without those that are illegal.

    Args:
        program: what is scheduled.
        most: how many steps at most.
    """
    schedule = unscheduled(program)
    for pair in fusable(program) if draw(st.booleans()) else ():
        schedule = Fuse(*pair).apply(schedule)
        break
    for _ in range(draw(st.integers(0, most))):
        step = draw(random_step(schedule))
        try:
            schedule = step.apply(schedule) if step else schedule
        except ScheduleError:
            continue
    return schedule


@st.composite
def random_step(draw: st.DrawFn, schedule: Schedule) -> LoopStep | None:
    """Draw a step on some nest, legal or not; None where the nest has no loops."""
    i = draw(st.integers(0, len(schedule.graph.nests) - 1))
    loops = [loop_text(loop) for loop in schedule.loops[i]]
    if not loops:
        return None
    return draw(st.sampled_from(_MAKERS))(draw, schedule.graph.nests[i], loops)


def _split(draw: st.DrawFn, nest: Nest, loops: Sequence[str]) -> LoopStep:
    axis = draw(st.sampled_from(loops)).partition(":")[0]
    return Split(axis, draw(st.sampled_from(FACTORS)), nest.name)


def _merge(draw: st.DrawFn, nest: Nest, loops: Sequence[str]) -> LoopStep:
    axis, _, step = draw(st.sampled_from(loops)).partition(":")
    return Merge(axis, int(step or 1), nest.name)


def _reorder(draw: st.DrawFn, nest: Nest, loops: Sequence[str]) -> LoopStep:
    return Reorder(tuple(draw(st.permutations(loops))), nest.name)


def _swap(draw: st.DrawFn, nest: Nest, loops: Sequence[str]) -> LoopStep:
    return Swap(draw(st.sampled_from(loops)), draw(st.sampled_from(loops)), nest.name)


def _pack(draw: st.DrawFn, nest: Nest, loops: Sequence[str]) -> LoopStep:
    tensors = [*(o.access.tensor for o in nest.operands), nest.statement.target.tensor]
    ahead = draw(st.integers(0, 3)) == 0
    at = "root" if ahead else draw(st.sampled_from(["root", *loops]))
    return Pack(draw(st.sampled_from(tensors)), at, ahead, nest.name)


def _stage(draw: st.DrawFn, nest: Nest, loops: Sequence[str]) -> LoopStep:
    return Stage(nest.statement.target.tensor, draw(st.sampled_from(loops)))


def _mark(kind: type[Unroll] | type[Vectorize]) -> _Make:
    return lambda draw, nest, loops: kind(draw(st.sampled_from(loops)), nest.name)


def _parallel(draw: st.DrawFn, nest: Nest, loops: Sequence[str]) -> LoopStep:
    del draw
    return Parallel(loops[0], nest.name)


_MAKERS: Sequence[_Make] = (
    *(_split, _split, _split, _pack, _pack, _pack, _reorder, _swap, _merge, _stage, _parallel),
    *(_mark(Unroll), _mark(Vectorize)),
)
