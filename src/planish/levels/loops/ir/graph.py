"""The data-flow graph of a program (thesis 3.5.2): nests, and the operands by which they read one another.

The thesis has a node for each read, view, operation and write. Here a nest is a statement: its operands are
the reads and, by their subscripts, the views; its expression the operations; its target the write.
Every operand has a virtual buffer. Whether that exists, and how large it is, follows from its loops
(`planish.levels.loops.lower.placement`): without any it is computed where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from planish.levels.loops.lang.lazy import lazy
from planish.levels.loops.lang.program import (
    Access,
    Index,
    Program,
    Statement,
    accesses,
    count_operations,
)
from planish.levels.loops.lang.subscripts import scattered


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
        scattered: dimensions of the target that are filled first; see `planish.levels.loops.lang.subscripts`.
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
