"""Steps that change which loops a nest has, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planish.core import ScheduleError, did_you_mean
from planish.loops.ir.fuse import fused
from planish.loops.ir.schedule import Schedule, loop_text, unscheduled
from planish.loops.ir.tree import LoopId
from planish.loops.steps.step import LoopStep, with_order


@dataclass(frozen=True)
class Split(LoopStep):
    """Walk an axis in tiles: add the loop `axis:factor` just outside the axis' next smaller loop.

    ::

        m, n, k   -- Split("m", 32) -->   m:32, m, n, k

    Tiles are full but for the last one, which has what remains of the axis. Further splits of the axis may
    be larger or smaller, and its steps divide one another.

    Args:
        axis: what is split.
        factor: elements in a tile; more than 1, less than the axis' extent.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    axis: str
    factor: int
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        order = schedule.loops[nest]
        self._check(schedule, [step for axis, step in order if axis == self.axis])
        at = next(i for i, (axis, step) in enumerate(order) if axis == self.axis and step < self.factor)
        return with_order(schedule, nest, (*order[:at], (self.axis, self.factor), *order[at:]))

    def _check(self, schedule: Schedule, steps: list[int]) -> None:
        extent = schedule.program.size.get(self.axis)
        if not steps or extent is None:
            nest = schedule.graph.nests[schedule.nest(self.nest)]
            known = ", ".join(nest.axes) or "none"
            raise ScheduleError(
                f"nest '{nest.name}' has no loop over axis '{self.axis}'", f"Its axes: {known}."
            )
        if not 1 < self.factor < extent:
            raise ScheduleError(
                f"cannot split axis '{self.axis}' by {self.factor}: it has {extent} elements",
                f"A factor is more than 1 and less than {extent}.",
            )
        for step in steps:
            # Else every pass of the larger loop would end with a tail of the smaller one.
            if max(step, self.factor) % min(step, self.factor) or step == self.factor:
                raise ScheduleError(
                    f"cannot split axis '{self.axis}' by {self.factor}: it has a loop of step {step}",
                    "The steps of one axis differ and divide one another.",
                )


@dataclass(frozen=True)
class Fuse(LoopStep):
    """Make one axis of two, along which every tensor that has them has its elements in sequence.

    ::

        k, y, x, c   -- Fuse("y", "x") -->   k, y.x, c

    The short axis of images of 28 by 28 fills no vectors; the one of 784 does.

    Args:
        outer: an axis.
        inner: the axis that moves fastest of the two.
    """

    outer: str
    inner: str

    def apply(self, schedule: Schedule) -> Schedule:
        program = schedule.program
        for axis in (self.outer, self.inner):
            if axis not in program.size:
                raise ScheduleError(f"the program has no axis '{axis}'", did_you_mean(axis, program.size))
        # Loops, marks and packings are named by axes, two of which this step takes away.
        if schedule.text != unscheduled(program).text:
            raise ScheduleError(
                f"cannot fuse '{self.outer}' and '{self.inner}' now", "Fuse before all other steps."
            )
        one = fused(program, self.outer, self.inner)
        if one is None:
            raise ScheduleError(
                f"cannot fuse '{self.outer}' and '{self.inner}': a tensor has other elements between",
                "Every tensor that has one of the axes must have both, side by side and whole.",
            )
        return unscheduled(one)


@dataclass(frozen=True)
class Merge(LoopStep):
    """Remove the loop `axis:step`; the inverse of `Split`.

    ::

        m:32, m, n, k   -- Merge("m", 32) -->   m, n, k

    Args:
        axis: whose loop is removed.
        step: its step; not 1.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    axis: str
    step: int
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        loop = schedule.find(nest, loop_text((self.axis, self.step)))
        # Without the loop of step 1 not every element would be reached.
        if self.step == 1:
            raise ScheduleError(
                f"cannot merge loop '{self.axis}' of step 1", "Only the loops of splits can be merged."
            )
        return with_order(schedule, nest, tuple(x for x in schedule.loops[nest] if x != loop))


@dataclass(frozen=True)
class Swap(LoopStep):
    """Exchange two loops.

    ::

        m, n, k   -- Swap("n", "k") -->   m, k, n

    The loops of one axis keep their order: larger steps outside.

    Args:
        a: a loop.
        b: another loop.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    a: str
    b: str
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        return _reordered(schedule, self.nest, (self.a, self.b), lambda loops: loops[::-1])


@dataclass(frozen=True)
class Reorder(LoopStep):
    """Put loops into the given order, in the places that they have; other loops stay.

    ::

        m:32, m, n, k   -- Reorder(("m:32", "k", "n", "m")) -->   m:32, k, n, m

    The loops of one axis keep their order: larger steps outside.

    Args:
        loops: two or more loops, outermost first.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    loops: tuple[str, ...]
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        wanted = [schedule.find(nest, text) for text in self.loops]
        return _reordered(schedule, self.nest, self.loops, lambda _: wanted)


@dataclass(frozen=True)
class Vectorize(LoopStep):
    """Make a loop the innermost, which is the one that code generators vectorise (thesis 3.4.2).

    ::

        m, n, k   -- Vectorize("n") -->   m, k, n

    Args:
        loop: a loop of step 1.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    loop: str
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        loop = schedule.find(nest, self.loop)
        if loop[1] != 1:
            raise ScheduleError(
                f"cannot vectorize loop '{self.loop}': its step is not 1", f"Vectorize '{loop[0]}' instead."
            )
        rest = [x for x in schedule.loops[nest] if x != loop]
        return with_order(schedule, nest, (*rest, loop))


def _reordered(
    schedule: Schedule, name: str, texts: tuple[str, ...], permute: Callable[[list[LoopId]], list[LoopId]]
) -> Schedule:
    nest = schedule.nest(name)
    named = {schedule.find(nest, text) for text in texts}
    if len(named) != len(texts):
        raise ScheduleError(
            f"cannot reorder {', '.join(texts)}: a loop is named twice", "Name each loop once."
        )
    order = list(schedule.loops[nest])
    places = [i for i, loop in enumerate(order) if loop in named]
    for i, loop in zip(places, permute([order[i] for i in places]), strict=True):
        order[i] = loop
    return with_order(schedule, nest, tuple(order))
