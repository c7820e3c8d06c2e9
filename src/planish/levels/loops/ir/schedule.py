"""A schedule: the loops of every nest, their kinds, and what is packed or staged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from planish.core import ScheduleError, did_you_mean
from planish.levels.loops.ir.graph import Graph, graph_of
from planish.levels.loops.ir.tree import LoopId
from planish.levels.loops.lang.lazy import lazy
from planish.levels.loops.lang.program import Program

Order = tuple[LoopId, ...]
"""The loops of a nest, outermost first."""


@dataclass(frozen=True)
class Packing:
    """A tile copied into a contiguous buffer; see `planish.levels.loops.steps.Pack`.

    Args:
        nest: number of the nest that reads or writes the tensor.
        tensor: whose tile is copied.
        at: the loop whose inner loops touch the tile; None for the root.
        ahead: whether an input is copied once, before the first call.
    """

    nest: int
    tensor: str
    at: LoopId | None
    ahead: bool


@dataclass(frozen=True)
class Schedule:
    """Order of execution of a program; made by `unscheduled` and changed by steps, so it is always legal.

    Args:
        graph: of the program.
        orders: for each nest its loops, or None where it follows the main nest: it has those of the main
            nest's loops that are over its axes, and then its other axes, each in one loop.
        unrolled: (number of the nest, loop).
        parallel: (number of the nest, loop); always the nest's outermost.
        packs: at most one for each nest and tensor.
        staged: (tensor, loop of the nest that writes it) that the tensor's readers may not share.
    """

    graph: Graph
    orders: tuple[Order | None, ...]
    unrolled: frozenset[tuple[int, LoopId]] = frozenset()
    parallel: frozenset[tuple[int, LoopId]] = frozenset()
    packs: tuple[Packing, ...] = ()
    staged: frozenset[tuple[str, LoopId]] = frozenset()

    @property
    def program(self) -> Program:
        """Return what is scheduled."""
        return self.graph.program

    @lazy
    def loops(self) -> tuple[Order, ...]:
        """The loops of every nest."""
        main = self.orders[self.graph.main] or ()
        found: list[Order] = []
        for nest, order in zip(self.graph.nests, self.orders, strict=True):
            if order is None:
                # The main nest's loops first, in its order: so both can share them.
                shared = tuple(loop for loop in main if loop[0] in nest.axes)
                covered = {axis for axis, _ in shared}
                order = shared + tuple((axis, 1) for axis in nest.axes if axis not in covered)
            found.append(order)
        return tuple(found)

    @lazy
    def text(self) -> str:
        """The canonical text: equal texts mean equal loop trees."""
        lines = [self._nest_text(i) for i in range(len(self.orders))]
        packs: list[str] = []
        for pack in self.packs:
            at, nest = loop_text(pack.at) if pack.at else "root", self.graph.nests[pack.nest].name
            packs.append(f"pack {pack.tensor} at {at} in {nest}{' ahead' if pack.ahead else ''}")
        # Sorted: in which order the steps came makes no difference to the tree.
        lines += sorted(packs) + sorted(f"stage {tensor} {loop_text(loop)}" for tensor, loop in self.staged)
        return "\n".join(lines)

    def nest(self, name: str) -> int:
        """Find a nest's number by its name; the empty name is the main nest.

        Raises:
            ScheduleError: there is no such nest.
        """
        if not name:
            return self.graph.main
        if name not in self.graph.nest:
            raise ScheduleError(f"there is no nest '{name}'", did_you_mean(name, self.graph.nest))
        return self.graph.nest[name]

    def find(self, nest: int, text: str) -> LoopId:
        """Find a nest's loop by its text, as in "m" or "m:32".

        Raises:
            ScheduleError: the nest has no such loop.
        """
        for loop in self.loops[nest]:
            if loop_text(loop) == text:
                return loop
        known = [loop_text(loop) for loop in self.loops[nest]]
        name = self.graph.nests[nest].name
        raise ScheduleError(f"nest '{name}' has no loop '{text}'", did_you_mean(text, known))

    def _nest_text(self, i: int) -> str:
        words = [
            loop_text(loop)
            + (" unroll" if (i, loop) in self.unrolled else "")
            + (" parallel" if (i, loop) in self.parallel else "")
            for loop in self.loops[i]
        ]
        return f"{self.graph.nests[i].name}: {', '.join(words)}"


def unscheduled(program: Program) -> Schedule:
    """Schedule a program as it is written: every axis one loop, in program order, nothing packed."""
    graph = graph_of(program)
    orders: list[Order | None] = [None] * len(graph.nests)
    orders[graph.main] = tuple((axis, 1) for axis in graph.nests[graph.main].axes)
    return Schedule(graph, tuple(orders))


@lru_cache(maxsize=1 << 14)
def loop_text(loop: LoopId) -> str:
    """Write a loop: "m" for step 1, else "m:32"."""
    axis, step = loop
    return axis if step == 1 else f"{axis}:{step}"
