"""From a candidate to the schedule that its steps lead to."""

from collections.abc import Mapping

from planish.core import Candidate, ScheduleError, Step
from planish.loops.program import Program
from planish.loops.schedule import Schedule, unscheduled
from planish.loops.steps import (
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

STEPS: Mapping[str, type[Step]] = {
    step.__name__: step for step in (Merge, Pack, Parallel, Reorder, Split, Stage, Swap, Unroll, Vectorize)
}
"""Name to class of every step that a candidate of this level's spaces may have."""


def resolve(program: Program, candidate: Candidate) -> Schedule:
    """Replay a candidate from the unscheduled program.

    Raises:
        ScheduleError: a step is illegal, or is no step of a schedule.
    """
    schedule = unscheduled(program)
    for step in candidate.steps:
        if not isinstance(step, LoopStep):
            raise ScheduleError(f"{step} is no step of a schedule", f"Known: {', '.join(STEPS)}.")
        schedule = step.apply(schedule)
    return schedule
