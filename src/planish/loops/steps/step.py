"""What a step of a schedule is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planish.core import ScheduleError, Step
from planish.loops.ir.rules import checked
from planish.loops.ir.schedule import Order, Schedule, loop_text


@dataclass(frozen=True)
class LoopStep(Step):
    """A transformation of a schedule.

    Loops are named as they are printed: "m" (step 1) or "m:32". A step that changes the loops of a nest other
    than the main one ends that nest's following of the main nest.
    """

    def apply(self, schedule: Schedule) -> Schedule:
        """Give the changed schedule.

        Raises:
            ScheduleError: the step is illegal here; the message names the rule and the axis.
        """
        raise NotImplementedError


def apply(schedule: Schedule, step: LoopStep) -> Schedule:
    """Apply a step to a schedule; raises ScheduleError where that is illegal."""
    return step.apply(schedule)


def with_order(schedule: Schedule, nest: int, order: Order) -> Schedule:
    """Give a nest new loops, if they are legal."""
    least: dict[str, int] = {}
    for axis, step in order:
        if least.get(axis, step + 1) <= step:
            raise ScheduleError(
                f"loop '{loop_text((axis, step))}' cannot be inside '{loop_text((axis, least[axis]))}'",
                f"The loops of axis '{axis}' keep their order: larger steps outside.",
            )
        least[axis] = step
    orders = (*schedule.orders[:nest], order, *schedule.orders[nest + 1 :])
    unrolled = frozenset((n, loop) for n, loop in schedule.unrolled if n != nest or loop in order)
    return checked(replace(schedule, orders=orders, unrolled=unrolled))
