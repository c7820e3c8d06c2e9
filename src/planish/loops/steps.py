"""The steps of a schedule. Each checks its rule, so no illegal schedule can be built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from planish.core import ScheduleError, Step, did_you_mean
from planish.loops.legality import checked
from planish.loops.schedule import Order, Packing, Schedule, loop_text
from planish.loops.tree import LoopId


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
        return _with_order(schedule, nest, (*order[:at], (self.axis, self.factor), *order[at:]))

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
            if max(step, self.factor) % min(step, self.factor) or step == self.factor:
                raise ScheduleError(
                    f"cannot split axis '{self.axis}' by {self.factor}: it has a loop of step {step}",
                    "The steps of one axis differ and divide one another.",
                )


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
        if self.step == 1:
            raise ScheduleError(
                f"cannot merge loop '{self.axis}' of step 1", "Only the loops of splits can be merged."
            )
        return _with_order(schedule, nest, tuple(x for x in schedule.loops[nest] if x != loop))


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
        return _with_order(schedule, nest, (*rest, loop))


@dataclass(frozen=True)
class Unroll(LoopStep):
    """Ask for a loop's body to be repeated instead of looped over.

    ::

        m, n, k:4, k   -- Unroll("k") -->   m, n, k:4, k unroll

    Args:
        loop: any loop.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    loop: str
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        loop = schedule.find(nest, self.loop)
        order = schedule.loops[nest]
        return replace(_with_order(schedule, nest, order), unrolled=schedule.unrolled | {(nest, loop)})


@dataclass(frozen=True)
class Parallel(LoopStep):
    """Run the iterations of the outermost loop on several cores.

    ::

        m:32, n, m, k   -- Parallel("m:32") -->   m:32 parallel, n, m, k

    Args:
        loop: the outermost loop, over an axis that is not reduced.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    loop: str
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        marked = schedule.parallel | {(nest, schedule.find(nest, self.loop))}
        return checked(replace(_with_order(schedule, nest, schedule.loops[nest]), parallel=marked))


@dataclass(frozen=True)
class Pack(LoopStep):
    """Copy the tile that a loop's inner loops touch into a contiguous buffer, in the order of use.

    ::

        n:64, k, m, n   -- Pack("B", "n:64") -->   n:64 (k, n: B.packed = B), k, m, n (reading B.packed)
        k:16, x, c, k   -- Pack("O", "k:16") -->   k:16, x, c, k (writing O.tile), (k, x: O = O.tile)

    What the nest reads is copied before the inner loops; what it writes is computed in the buffer and taken
    to memory after them. Only a loop that encloses no part of a reduction can hold the tile of an output.

    Args:
        tensor: what the nest reads in one way, or the output that it writes.
        at: the loop around the copy, or "root".
        ahead: copy the tensor once, before the first call; only at the root, and only a constant of the
            program.
        nest: the tensor whose nest is meant; empty for the main nest.
    """

    tensor: str
    at: str = "root"
    ahead: bool = False
    nest: str = ""

    def apply(self, schedule: Schedule) -> Schedule:
        nest = schedule.nest(self.nest)
        at = None if self.at == "root" else schedule.find(nest, self.at)
        if any(p.nest == nest and p.tensor == self.tensor for p in schedule.packs):
            raise ScheduleError(f"tensor '{self.tensor}' is packed already", "A nest packs a tensor once.")
        pack = Packing(nest, self.tensor, at, self.ahead)
        return checked(replace(schedule, packs=(*schedule.packs, pack)))


@dataclass(frozen=True)
class Stage(LoopStep):
    """Forbid the readers of a tensor to share a loop with the nest that writes it (thesis listing 5).

    ::

        x, z (a = ...; b = f(a))   -- Stage("a", "z") -->   x, (z: a = ...), (z: b = f(a))

    The tensor's buffer then holds the whole loop. The loops inside that loop are not shared either.

    Args:
        tensor: written and read by the program.
        loop: of the nest that writes it.
    """

    tensor: str
    loop: str

    def apply(self, schedule: Schedule) -> Schedule:
        intermediate = sorted(set(schedule.program.written) & set(schedule.program.read))
        if self.tensor not in intermediate:
            raise ScheduleError(
                f"cannot stage '{self.tensor}': the program does not both write and read it",
                did_you_mean(self.tensor, intermediate),
            )
        loop = schedule.find(schedule.graph.writers[self.tensor][0], self.loop)
        return checked(replace(schedule, staged=schedule.staged | {(self.tensor, loop)}))


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
    return _with_order(schedule, nest, tuple(order))


def _with_order(schedule: Schedule, nest: int, order: Order) -> Schedule:
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
