"""Drafts of kernels: statements of `loops` whose last value can be continued element by element."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import QINT8, Program
from planish.network.ir import Network, Node, Shape

OUTPUT = "O"
"""Name of a kernel's output."""
PART = "u"
"""The axis of one element in subscripts that reach a part of a dimension."""


@dataclass(frozen=True)
class Axis:
    """An axis of a kernel's result.

    Args:
        name: in the program.
        extent: of it.
        dims: the dimensions of the result that it is of: several that it joins, or one that it shares.
    """

    name: str
    extent: int
    dims: tuple[int, ...]


class PartialBroadcastError(Exception):
    """A tensor has some of the dimensions that an axis joins, and not the others."""


def frame(shape: Shape, names: Sequence[str]) -> tuple[Axis, ...]:
    """Return an axis for each dimension of more than one element."""
    return tuple(Axis(n, e, (d,)) for d, (n, e) in enumerate(zip(names, shape, strict=True)) if e > 1)


def align_shape(shape: Shape, rank: int) -> Shape:
    """Return a shape with leading dimensions of 1 up to a rank."""
    return (1,) * (rank - len(shape)) + shape


def axes_present(axes: Iterable[Axis], shape: Shape, result: Shape) -> list[Axis]:
    """Return the axes of a result that a tensor which is broadcast to it has.

    Raises:
        PartialBroadcastError: of an axis of several dimensions it has only some.
    """
    own, found = align_shape(shape, len(result)), list[Axis]()
    for axis in axes:
        full = [own[d] == result[d] for d in axis.dims if result[d] > 1]
        if all(full):
            found.append(axis)
        elif any(full):
            raise PartialBroadcastError
    return found


def number(value: float) -> str:
    """Write a number as a value of a program."""
    text = repr(abs(value)) if abs(value) != float("inf") else "inf"
    return f"(-{text})" if value < 0 else text


@dataclass(frozen=True)
class FixedTree:
    """Loop tree of a kernel that has no other schedule.

    Args:
        tree: what is executed.
        operations: arithmetic operations of a call.
    """

    tree: LoopTree
    operations: int


@dataclass
class KernelBuilder:
    """A kernel in the making; axes of extent 1, and dimensions that only they subscript, are left out.

    Args:
        network: whose tensors are read.
        statements: so far.
        sizes: axis to extent.
        operands: name in the program to the tensor, and the shape in which it is read.
        shapes: of the kernel's own tensors that need one.
        dtypes: types of operands in the program, where they are other ones than the network's.
        kept: axes of the result that stay though they have one element.
        axes: of the result.
        result: the value over them.
        shape: of the result, as the network has it.
        make_tree: makes the tree that computes the program, where that is not left to a schedule.
    """

    network: Network
    statements: list[str] = field(default_factory=list[str])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    operands: dict[str, tuple[str, Shape]] = field(default_factory=dict[str, tuple[str, Shape]])
    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])
    dtypes: dict[str, str] = field(default_factory=dict[str, str])
    kept: set[str] = field(default_factory=set[str])
    axes: tuple[Axis, ...] = ()
    result: str = ""
    shape: Shape = ()
    make_tree: Callable[[Program], FixedTree] | None = None

    def axis(self, name: str, extent: int) -> str:
        """Add an axis; return its name."""
        self.sizes[name] = extent
        return name

    def subscript(self, terms: Mapping[str, int], offset: int = 0) -> str:
        """Write a subscript: the sum of axis x coefficient, plus an offset; "0" is one that never moves."""
        parts = [a if c == 1 else f"{c}*{a}" for a, c in terms.items() if self.sizes[a] > 1]
        if offset or not parts:
            parts.append(str(offset))
        return "+".join(parts).replace("+-", "-")

    def along(self, axes: Iterable[str]) -> list[tuple[str, int]]:
        """Return the subscript and the extent of dimensions that axes walk along, each by itself."""
        return [(self.subscript({axis: 1}), self.sizes[axis]) for axis in axes]

    def access(
        self,
        tensor: str,
        subscripts: Sequence[tuple[str, int]],
        pad: float | None = None,
        dims: Sequence[int] | None = None,
    ) -> str:
        """Read a tensor of the network.

        Args:
            tensor: its name.
            subscripts: each dimension's subscript and extent, in which the tensor is row-major.
            pad: what is read beyond it; None where it is not left.
            dims: the dimension of the network's tensor that each subscript is of, where the tensor may be
                stored in another order.
        """
        if dims is not None:
            subscripts = [subscripts[i] for i in self.memory_order(dims, tensor)]
        kept = [
            (self.partial(text, extent), extent)
            for text, extent in subscripts
            if not (extent == 1 and text == "0")
        ]
        local = self.operand(tensor, tuple(extent for _, extent in kept))
        text = f"{local}[{','.join(text for text, _ in kept)}]"
        return text if pad is None else f"pad({text},{number(pad).strip('()')})"

    def partial(self, subscript: str, extent: int) -> str:
        """Return a subscript for a dimension of which it may reach only a part, or padding after it.

        A dimension is read whole where an axis is all of its subscript: so there is another axis, of one
        element, over which the value must be reduced.
        """
        if self.sizes.get(subscript, extent) == extent:
            return subscript
        return f"{subscript}+{self.axis(PART, 1)}"

    def memory_order(self, dims: Sequence[int], tensor: str) -> list[int]:
        """Return the order in which parts of dimensions are in the memory of a tensor."""
        position = {d: i for i, d in enumerate(self.network.order(tensor))}
        return sorted(range(len(dims)), key=lambda i: position[dims[i]])

    def order_axes(self, axes: Sequence[Axis], tensor: str) -> tuple[Axis, ...]:
        """Order the axes of a tensor as they are in memory."""
        if not self.network.channels_last:
            return tuple(axes)
        return tuple(axes[i] for i in self.memory_order([axis.dims[0] for axis in axes], tensor))

    def operand(self, tensor: str, shape: Shape) -> str:
        """Return what a tensor of the network is called that is read in a shape."""
        key = self.network.root(tensor), shape
        for local, known in self.operands.items():
            if known == key:
                return local
        local = f"I{len(self.operands)}"
        self.operands[local] = key
        return local

    def write(self, target: str, axes: Sequence[str], update: str, value: str) -> str:
        """Add a statement; return the element that it writes."""
        element = f"{target}[{','.join(a for a in axes if self.sizes[a] > 1)}]"
        # A reduction over axes of one element is none.
        reduces = set(re.findall(r"[A-Za-z_]\w*", value)) & set(self.sizes) - set(axes)
        update = update if reduces else "="
        self.statements.append(f"{element} {update} {value}")
        return element

    def broadcast(self, tensor: str) -> str:
        """Read a tensor that is broadcast to the result, at the result's axes; a constant number as itself.

        Raises:
            PartialBroadcastError: it has only some of the dimensions of an axis.
        """
        if (value := self.network.scalar(self.network.root(tensor))) is not None:
            return number(value)
        shape = self.network.shape(tensor)
        found = self.axes_of(tensor)
        # A tensor of fewer dimensions has the last of the result's.
        dims = [
            next(d for d in axis.dims if self.shape[d] > 1) - len(self.shape) + len(shape) for axis in found
        ]
        return self.access(tensor, [(axis.name, axis.extent) for axis in found], dims=dims)

    def axes_of(self, tensor: str) -> list[Axis]:
        """Return the axes of the result that a tensor which is broadcast to it has.

        Raises:
            PartialBroadcastError: it has some of the dimensions of an axis, or has them in another order.
        """
        shape = self.network.shape(tensor)
        found = axes_present(self.axes, shape, self.shape)
        missing, order = len(self.shape) - len(shape), self.network.order(tensor)
        long = [d + missing for d in order if shape[d] > 1]
        for axis in found:
            own = [d for d in axis.dims if self.shape[d] > 1]
            first = long.index(own[0]) if own else 0
            if long[first : first + len(own)] != own:
                raise PartialBroadcastError
        return found

    def finish(self, shape: Shape, axes: Iterable[Axis], result: str) -> KernelBuilder:
        """Set what the kernel computes: a value over axes, which are row-major a tensor of this shape."""
        self.axes = tuple(axis for axis in axes if axis.extent > 1 or axis.name in self.kept)
        self.shape, self.result = shape, result
        self.sizes |= {axis.name: axis.extent for axis in self.axes}
        return self

    def element(self, name: str) -> str:
        """Write the element of a tensor over all axes of the result."""
        return f"{name}[{','.join(axis.name for axis in self.axes)}]"

    def program(self) -> Program:
        """Return the program that computes the result as `OUTPUT`."""
        statements, shapes = list(self.statements), dict(self.shapes)
        own = re.fullmatch(r"([A-Z]\w*)\[([^]]*)\]", self.result)
        if own and own[1] not in self.operands and self.result == self.element(own[1]):
            # What was computed last is the result: it needs no copy.
            name = re.compile(rf"\b{own[1]}\[")
            statements = [name.sub(f"{OUTPUT}[", statement) for statement in statements]
            shapes = {OUTPUT if k == own[1] else k: v for k, v in shapes.items()}
        else:
            statements.append(f"{self.element(OUTPUT)} = {self.result}")
        text = "; ".join(statements)
        named = set(re.findall(r"[A-Za-z_]\w*", text))
        shapes |= {local: shape for local, (_, shape) in self.operands.items() if local in named}
        sizes = {axis: extent for axis, extent in self.sizes.items() if axis in named}
        dtypes = {
            local: self.dtypes.get(local, self.network.types[tensor].dtype)
            for local, (tensor, _) in self.operands.items()
            if local in named
        }
        narrow = {
            local: QINT8 if dtype == "int8" else dtype
            for local, dtype in dtypes.items()
            if dtype != "float32"
        }
        made = parse(text, sizes, shapes, narrow or "float32")
        constant = [n for n in made.inputs if self.operands[n][0] in self.network.constants]
        return made.with_constants(n for n in constant if n not in made.integer_indices)


def join_axes(network: Network, node: Node) -> tuple[Axis, ...]:
    """Return axes for the result of an element-wise operator.

    Neighbors are one axis where all operands allow it, and none has rows apart that end between them; of
    tensors whose channels are last, only the dimensions of the image are neighbors.
    """
    shape, names = network.shape(node.output), [name for name in node.inputs if name]
    wide = [align_shape(network.shape(name), len(shape)) for name in names]
    image = not network.channels_last.isdisjoint((node.output, *names))
    # The image of an operand of fewer dimensions lies elsewhere in the result.
    moved = image and any(
        len(network.shape(name)) < len(shape) for name in names if name in network.channels_last
    )
    starts = [(name, network.row_start(name)) for name in (*names, node.output)]
    cuts = {start + len(shape) - len(network.shape(name)) for name, start in starts if start is not None}
    groups = list[list[int]]()
    for d, extent in enumerate(shape):
        if extent == 1:
            continue
        here = [each[d] > 1 for each in wide]
        crosses = bool(groups) and any(groups[-1][-1] < cut <= d for cut in cuts)
        apart = moved or crosses or (image and (d < 3 or not groups or groups[-1][-1] < 2))
        if groups and not apart and here == [each[groups[-1][-1]] > 1 for each in wide]:
            groups[-1].append(d)
        else:
            groups.append([d])
    return tuple(Axis(f"d{i}", prod(shape[d] for d in group), tuple(group)) for i, group in enumerate(groups))
