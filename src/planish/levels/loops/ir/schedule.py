"""Schedules: the data-flow graph of a program, and of every nest the loops, their kinds, and what is packed.

The graph of the thesis (3.5.2) has a node for each read, view, operation and write. Here a nest is a
statement: its operands are the reads and, by their subscripts, the views; its expression the operations; its
target the write. Every operand has a virtual buffer. Whether that exists, and how large it is, follows from
its loops (`planish.levels.loops.lower.placement`): without any it is computed where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from planish.core import ScheduleError, did_you_mean
from planish.levels.loops.lang.draft import scattered, tables
from planish.levels.loops.lang.program import (
    Access,
    Index,
    Program,
    Statement,
    accesses,
    count_operations,
    lazy,
)

if TYPE_CHECKING:
    from planish.levels.loops.ir.tree import LoopId


# Equal operands are identical: each is one access of one nest.
@dataclass(frozen=True, eq=False)
class Operand:
    """Operand of a nest.

    Args:
        access: as the statement has it.
        links: for each nest that writes the tensor: its number, and the axes along which this operand needs
            only what the nest has written in the same iteration.
    """

    access: Access
    links: tuple[tuple[int, frozenset[str]], ...] = ()


@dataclass(frozen=True)
class Nest:
    """A statement as the scheduler sees it.

    Args:
        name: the tensor that it writes; with "#2", "#3" and so on for further writers of one tensor.
        statement: what is computed.
        axes: those of more than one element, data-parallel ones first; the others need no loop.
        reduced: those of them that are reduced away, and those of the scattered dimensions: in several
            iterations of such a loop the same element is written.
        operands: what it reads, each distinct access once.
        work: arithmetic operations in all.
        scattered: dimensions of the target that are filled first; see `planish.levels.loops.lang.draft`.
    """

    name: str
    statement: Statement
    axes: tuple[str, ...]
    reduced: frozenset[str]
    operands: tuple[Operand, ...]
    work: int
    scattered: tuple[int, ...] = ()

    @lazy
    def operand(self) -> dict[Access, Operand]:
        """Access to the operand that it is."""
        return {operand.access: operand for operand in self.operands}

    @lazy
    def tables(self) -> frozenset[Access]:
        """The accesses that are gathered from, by the elements of another tensor."""
        return tables(self.statement.value)


# Equal graphs are identical, and comparing all nests would take long for each candidate.
@dataclass(frozen=True, eq=False)
class Graph:
    """A program's nests in its order; there is one for each program, made by `graph_of`."""

    program: Program
    nests: tuple[Nest, ...]

    @lazy
    def nest(self) -> dict[str, int]:
        """Name of a nest to its number."""
        return {n.name: i for i, n in enumerate(self.nests)}

    @lazy
    def main(self) -> int:
        """The number of the nest with most work, the first of equals."""
        return max(range(len(self.nests)), key=lambda i: self.nests[i].work)

    @lazy
    def writers(self) -> Mapping[str, tuple[int, ...]]:
        """Tensor to the numbers of the nests that write it."""
        found: dict[str, tuple[int, ...]] = {}
        for i, nest in enumerate(self.nests):
            tensor = nest.statement.target.tensor
            found[tensor] = (*found.get(tensor, ()), i)
        return found


# Each schedule of a program asks for it.
@lru_cache(maxsize=256)
def graph_of(program: Program) -> Graph:
    """Build the data-flow graph of a program."""
    nests: list[Nest] = []
    for statement in program.statements:
        nests.append(_nest(statement, program, nests))
    return Graph(program, tuple(nests))


def _nest(statement: Statement, program: Program, before: list[Nest]) -> Nest:
    size, target = program.size, statement.target
    others = sum(nest.statement.target.tensor == target.tensor for nest in before)
    operands: list[Operand] = []
    for access in dict.fromkeys(accesses(statement.value)):
        sources = [(i, n) for i, n in enumerate(before) if n.statement.target.tensor == access.tensor]
        # Not along reduced axes: a reader needs the whole sum, and inside such a loop there is only a part of
        # it.
        links = tuple((i, _pointwise(access, n.statement.target) - n.reduced) for i, n in sources)
        operands.append(Operand(access, links))
    dimensions = scattered(target, size, program.type[target.tensor].shape)
    # A loop of one iteration would only be one more that steps can name, and change nothing.
    axes = tuple(a for a in statement.axes if size[a] > 1)
    # Loops over scattered dimensions write an element again and again, as those of reductions do.
    again = [axis for d in dimensions for axis, _ in target.index[d].terms]
    # Each term of a reduction is also added, or compared.
    operations = count_operations(statement.value) + (statement.reduce is not None)
    return Nest(
        f"{target.tensor}#{others + 1}" if others else target.tensor,
        statement,
        axes,
        frozenset((*statement.reduced_axes, *again)).intersection(axes),
        tuple(operands),
        prod(size[axis] for axis in statement.axes) * operations,
        dimensions,
    )


def plain_axis(index: Index) -> str | None:
    """Return the axis of a subscript that is one axis with coefficient 1, whatever the offset; else None."""
    return index.terms[0][0] if len(index.terms) == 1 and index.terms[0][1] == 1 else None


def _pointwise(reader: Access, writer: Access) -> frozenset[str]:
    """Find the axes along which a reader needs only what a writer wrote in the same iteration."""
    pairs = zip(reader.index, writer.index, strict=True)
    return frozenset(axis for r, w in pairs if r == w and (axis := plain_axis(r)) is not None)


Order: TypeAlias = "tuple[LoopId, ...]"
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
        """Return the program that is scheduled."""
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
