"""From a candidate to the schedule that its steps lead to."""

from collections.abc import Mapping

from planish.core import Candidate, ScheduleError, Step
from planish.loops.ir.schedule import Schedule
from planish.loops.lang.program import Program
from planish.loops.space.cursor import CursorStep, Down, SplitBy, SwapDown, SwapUp, Up, start
from planish.loops.space.marking import PackHere, UnrollHere, VectorizeHere
from planish.loops.steps import (
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
)

_LOOP_STEPS = (Fuse, Merge, Pack, Parallel, Reorder, Split, Stage, Swap, Unroll, Vectorize)
_CURSOR_STEPS = (Down, PackHere, SplitBy, SwapDown, SwapUp, UnrollHere, Up, VectorizeHere)
STEPS: Mapping[str, type[Step]] = {step.__name__: step for step in (*_LOOP_STEPS, *_CURSOR_STEPS)}
"""Name to class of every step that a candidate of this level's spaces may have."""


def resolve(program: Program, candidate: Candidate) -> Schedule:
    """Replay a candidate from the unscheduled program.

    Raises:
        ScheduleError: a step is illegal, or is no step of a schedule.
    """
    schedule, cursor = start(program)
    for step in candidate.steps:
        if isinstance(step, LoopStep):
            schedule = step.apply(schedule)
        elif isinstance(step, CursorStep):
            schedule, cursor = step.move((schedule, cursor))
        else:
            raise ScheduleError(f"{step} is no step of a schedule", f"Known: {', '.join(STEPS)}.")
    return schedule
