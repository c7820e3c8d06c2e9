"""Random legal schedules of any program, to fuzz lowering and code generators."""

from __future__ import annotations

from hypothesis import strategies as st

from planish.core import ScheduleError
from planish.loops.graph import graph_of
from planish.loops.program import Program
from planish.loops.schedule import Schedule, loop_text, unscheduled
from planish.loops.steps import LoopStep, Pack, Parallel, Split, Stage, Swap, Unroll

FACTORS = (2, 3, 4, 5, 8, 16, 17, 32)


@st.composite
def schedules(draw: st.DrawFn, program: Program, most: int = 10) -> Schedule:
    """Draw a schedule: up to `most` random steps, those that are illegal left out."""
    schedule = unscheduled(program)
    for _ in range(draw(st.integers(0, most))):
        try:
            schedule = draw(_step(schedule)).apply(schedule)
        except ScheduleError:
            continue
    return schedule


@st.composite
def _step(draw: st.DrawFn, schedule: Schedule) -> LoopStep:
    nests = graph_of(schedule.program).nests
    nest = draw(st.sampled_from([n.name for n in nests]))
    loops = [loop_text(loop) for loop in schedule.loops[schedule.nest(nest)]]
    if not loops:
        return Pack(draw(st.sampled_from(list(schedule.program.type))))
    loop, other = (draw(st.sampled_from(loops)) for _ in range(2))
    tensor = draw(st.sampled_from(list(schedule.program.type)))
    split = Split(loop.partition(":")[0], draw(st.sampled_from(FACTORS)), nest)
    rare = [
        Unroll(loop, nest),
        Parallel(loops[0], nest),
        Stage(tensor, loop),
        Pack(tensor, draw(st.sampled_from(["root", *loops])), False, nest),
        Pack(tensor, "root", True, nest),
    ]
    return draw(
        st.sampled_from([split, split, split, Swap(loop, other, nest), Swap(loop, other, nest), *rare])
    )
