"""The data-flow graph of a program: read, view, arithmetic and write nodes (thesis 3.5.2).

Every node has a virtual buffer for its output, over its `axes`. Whether that buffer exists, and how large it
is, follows from the loops that an annotation gives to the node (`planish.levels.loops.lower.placement`): a
node without annotation is computed where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from math import prod

from planish.levels.loops.lang.lazy import lazy
from planish.levels.loops.lang.program import (
    Access,
    Apply,
    Const,
    Expr,
    Index,
    Program,
    Statement,
    accesses,
    count_operations,
)
from planish.levels.loops.lang.subscripts import scattered


@dataclass(frozen=True)
class Read:
    """Values of a tensor in memory.

    Args:
        name: unique in the graph.
        tensor: what is read.
        axes: one for each dimension; a dimension that a view subscripts is named `tensor.dimension`.
        sources: the nodes that write the tensor, where the program itself does.
    """

    name: str
    tensor: str
    axes: tuple[str, ...]
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class View:
    """Another node seen through affine subscripts, one for each of its dimensions.

    Args:
        name: unique in the graph.
        source: the node that is looked at.
        index: the subscripts, over `axes`.
        pad: what is seen outside the source; None where the view stays inside.
        axes: every axis of the subscripts.
    """

    name: str
    source: str
    index: tuple[Index, ...]
    pad: float | None
    axes: tuple[str, ...]


@dataclass(frozen=True)
class Arithmetic:
    """An element-wise function of nodes and numbers, or the reduction of one node.

    Args:
        name: unique in the graph; the node that finishes a statement has the name of its nest.
        function: one of `program.FUNCTIONS`, or "copy".
        inputs: what it is applied to; one node where it reduces.
        axes: the axes of its output.
        reduced: the axes that it reduces away.
    """

    name: str
    function: str
    inputs: tuple[str | Const, ...]
    axes: tuple[str, ...]
    reduced: tuple[str, ...] = ()


@dataclass(frozen=True)
class Write:
    """Puts a node's output into a tensor in memory; `index` has one subscript for each dimension."""

    name: str
    tensor: str
    source: str
    index: tuple[Index, ...]
    axes: tuple[str, ...]


Node = Read | View | Arithmetic | Write


@dataclass(frozen=True)
class Operand:
    """Operand of an expression: a node, and the subscripts of the tensor behind it.

    Args:
        node: the name of the read, view or arithmetic node.
        access: as the statement has it.
        links: for each nest that writes the tensor: its number, and the axes along which this operand needs
            only what the nest has written in the same iteration.
    """

    node: str
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


# Equal graphs are identical, and comparing all nodes would take long for each candidate.
@dataclass(frozen=True, eq=False)
class Graph:
    """A program's nodes, each after those that it depends on, and its nests in program order.

    There is one for each program, made by `graph_of`; so equal graphs are identical.
    """

    program: Program
    nodes: tuple[Node, ...]
    nests: tuple[Nest, ...]

    @lazy
    def node(self) -> dict[str, Node]:
        """Name to node."""
        return {n.name: n for n in self.nodes}

    @lazy
    def operand(self) -> dict[str, Operand]:
        """Name of a read or view node to the operand that it serves."""
        return {o.node: o for nest in self.nests for o in nest.operands}

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
    """Build the data-flow graph of a program.

    Each distinct access of a statement becomes a read node, followed by a view where its subscripts are
    more than distinct axes. The nodes of an expression are named after their nest: `C.0` is the product
    in `C[m, n] += A[m, k] * B[k, n]`, and `C` is its reduction.
    """
    return _Builder(program).build()


class _Builder:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.nodes: dict[str, Node] = {}
        self.nests: list[Nest] = []

    def build(self) -> Graph:
        for statement in self.program.statements:
            self._nest(statement)
        return Graph(self.program, tuple(self.nodes.values()), tuple(self.nests))

    def _nest(self, statement: Statement) -> None:
        name = self._unique(statement.target.tensor, {n.name for n in self.nests})
        operands = {a: self._operand(a, name) for a in dict.fromkeys(accesses(statement.value))}
        self._arithmetic(statement, name, operands)
        target = statement.target
        if target.tensor in self.program.outputs:
            self._add(Write(f"write {name}", target.tensor, name, target.index, statement.output_axes))
        size = self.program.size
        # A loop of one iteration would only be one more that steps can name, and change nothing.
        axes = tuple(a for a in statement.axes if size[a] > 1)
        dimensions = scattered(target, size, self.program.type[target.tensor].shape)
        # Loops over scattered dimensions write an element again and again, as those of reductions do.
        again = [axis for d in dimensions for axis, _ in target.index[d].terms]
        reduced = frozenset((*statement.reduced_axes, *again)).intersection(axes)
        work = _work(statement, size)
        self.nests.append(Nest(name, statement, axes, reduced, tuple(operands.values()), work, dimensions))

    def _arithmetic(self, statement: Statement, name: str, operands: Mapping[Access, Operand]) -> None:
        counter = count()

        def visit(expr: Expr) -> str | Const:
            match expr:
                case Const():
                    return expr
                case Access():
                    return operands[expr].node
                case Apply(function, args):
                    inputs = tuple(map(visit, args))
                    node = Arithmetic(f"{name}.{next(counter)}", function, inputs, _axes_of(expr))
                    return self._add(node)

        value = statement.value
        if statement.reduce:
            inputs: tuple[str | Const, ...] = (visit(value),)
            function = statement.reduce
        elif isinstance(value, Apply):
            inputs, function = tuple(map(visit, value.args)), value.function
        else:
            inputs, function = (visit(value),), "copy"
        self._add(Arithmetic(name, function, inputs, statement.output_axes, statement.reduced_axes))

    def _operand(self, access: Access, nest: str) -> Operand:
        sources = [(i, n) for i, n in enumerate(self.nests) if n.statement.target.tensor == access.tensor]
        # Not along reduced axes: a reader needs the whole sum, and inside such a loop there is only a part of
        # it.
        links = tuple((i, _pointwise(access, n.statement.target) - n.reduced) for i, n in sources)
        # One writer's node is looked at directly; what several write is only together in memory.
        if len(sources) == 1:
            return Operand(self._view(access, sources[0][1].name, nest), access, links)
        dims = tuple(_dimension_names(access))
        read = Read(self._unique(access.tensor), access.tensor, dims, tuple(n.name for _, n in sources))
        name = self._add(read)
        plain = access.pad is None and dims == tuple(map(str, access.index))
        return Operand(name if plain else self._view(access, name, nest), access, links)

    def _view(self, access: Access, source: str, nest: str) -> str:
        name = self._unique(f"{nest}<{source}")
        return self._add(View(name, source, access.index, access.pad, _axes_of(access)))

    def _add(self, node: Node) -> str:
        self.nodes[node.name] = node
        return node.name

    def _unique(self, name: str, taken: set[str] | None = None) -> str:
        used = self.nodes.keys() if taken is None else taken
        if name not in used:
            return name
        return next(f"{name}#{i}" for i in count(2) if f"{name}#{i}" not in used)


def _axes_of(expr: Expr) -> tuple[str, ...]:
    named = (axis for a in accesses(expr) for index in a.index for axis, _ in index.terms)
    return tuple(dict.fromkeys(named))


def _dimension_names(access: Access) -> Iterator[str]:
    """Return the axis of each dimension of a read, where it is alone and subscripts nothing else."""
    used = [axis for index in access.index for axis, _ in index.terms]
    for d, index in enumerate(access.index):
        axis = plain_axis(index)
        alone = axis is not None and index.offset == 0 and used.count(axis) == 1
        yield axis if axis and alone else f"{access.tensor}.{d}"


def plain_axis(index: Index) -> str | None:
    """Return the axis of a subscript that is one axis with coefficient 1, whatever the offset; else None."""
    return index.terms[0][0] if len(index.terms) == 1 and index.terms[0][1] == 1 else None


def _pointwise(reader: Access, writer: Access) -> frozenset[str]:
    """Find the axes along which a reader needs only what a writer wrote in the same iteration."""
    pairs = zip(reader.index, writer.index, strict=True)
    return frozenset(axis for r, w in pairs if r == w and (axis := plain_axis(r)) is not None)


def _work(statement: Statement, size: Mapping[str, int]) -> int:
    points = prod(size[axis] for axis in statement.axes)
    # Each term of a reduction is also added, or compared.
    return points * (count_operations(statement.value) + (statement.reduce is not None))
