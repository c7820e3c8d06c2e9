"""Steps that say how a loop runs, and where what it touches is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planish.core import ScheduleError, did_you_mean
from planish.loops.ir.rules import checked
from planish.loops.ir.schedule import Packing, Schedule
from planish.loops.steps.step import LoopStep, with_order


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
        return replace(with_order(schedule, nest, order), unrolled=schedule.unrolled | {(nest, loop)})


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
        return checked(replace(with_order(schedule, nest, schedule.loops[nest]), parallel=marked))


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
