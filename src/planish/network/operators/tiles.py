"""Loop trees over tiles of images that are stored with channels last.

The body of such a tree computes one tile for a vector of channels, and is unrolled: its values pass in
registers. Tiles at an edge of an image, which read zeros or write less, have loops of their own, so that no
input is copied to get edges, and no index is tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from planish.levels.loops.ir.tree import Buffer, Call, Leaf, Loop, LoopTree, Node, Ref, Value
from planish.levels.loops.lang.program import Access, Apply, Const, Expr, Program, Statement, accesses


@dataclass
class Body:
    """Leaves of the innermost loop, and the temporaries that pass values between them.

    Args:
        prefix: of the temporaries' names.
        scope: loops around the leaves.
    """

    prefix: str
    scope: int
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    buffers: list[Buffer] = field(default_factory=list[Buffer])

    def keep(self, value: Value) -> Ref:
        """Compute a value once; return a reference to it."""
        if isinstance(value, Ref):
            return value
        name = f"{self.prefix}{len(self.buffers)}"
        self.buffers.append(Buffer(name, "float32", 1, "temporary", self.scope))
        self.leaves.append(Leaf(ref := Ref(name, 0, ()), None, value))
        return ref


@dataclass(frozen=True)
class Span:
    """Neighboring tiles that are alike.

    Args:
        first: number of the first.
        count: of them.
        valid: for each window, and each of its elements, whether it is inside the image.
    """

    first: int
    count: int
    valid: tuple[tuple[bool, ...], ...]


@dataclass(frozen=True)
class Window:
    """Elements of an image that a tile touches, in one dimension.

    Args:
        stride: from a tile to the next.
        offset: of the first tile's first element; negative where it is before the image.
        size: elements of a tile.
        extent: of the image.
    """

    stride: int
    offset: int
    size: int
    extent: int

    def inside(self, tile: int) -> tuple[bool, ...]:
        """Return for each element of a tile whether it is inside the image."""
        first = tile * self.stride + self.offset
        return tuple(0 <= first + i < self.extent for i in range(self.size))


def spans_of(count: int, *windows: Window) -> list[Span]:
    """Group tiles by which of the elements that they touch are inside their images."""
    found, first = list[Span](), 0
    for key, group in groupby(tuple(window.inside(tile) for window in windows) for tile in range(count)):
        found.append(Span(first, n := len(list(group)), key))
        first += n
    return found


Offsets = Mapping[str, int]
"""Loop ("n", "y", "x" or "c") to elements for each of its steps."""


class TileNest:
    """Builds loops over images, tiles and channels, one nest for each kind of tiles.

    Args:
        batch: images.
        channels: the vector axis's extent.
        tile: rows and columns of results of a tile.
        spans: kinds of rows of tiles, and of columns.
    """

    def __init__(
        self, batch: int, channels: int, tile: tuple[int, int], spans: tuple[list[Span], list[Span]]
    ) -> None:
        self.batch, self.tile, self.spans = batch, tile, spans
        self.sizes = {"n": batch, "c": channels}
        self.sizes |= {f"y{i}": s.count for i, s in enumerate(spans[0])}
        self.sizes |= {f"x{i}": s.count for i, s in enumerate(spans[1])}
        self.buffers: list[Buffer] = []
        self.operations = 0

    def ref(self, buffer: str, offset: int, at: tuple[int, int], steps: Offsets) -> Ref:
        """Return an element that moves with each loop by a step in elements, from that of the first tile."""
        names = {"n": "n", "y": f"y{at[0]}", "x": f"x{at[1]}", "c": "c"}
        y, x = (spans[i].first for spans, i in zip(self.spans, at, strict=True))
        offset += y * steps.get("y", 0) + x * steps.get("x", 0)
        strides = tuple(((names[k], 1), s) for k, s in steps.items() if s and self.sizes[names[k]] > 1)
        return Ref(buffer, offset, strides)

    def body(self, at: tuple[int, int]) -> Body:
        """Begin the body of a kind of tiles."""
        return Body(f"t{at[0]}_{at[1]}_", 3 + (self.batch > 1))

    def tree(self, bodies: Mapping[tuple[int, int], Body], outside: Sequence[Buffer]) -> LoopTree:
        """Return the tree of all bodies, with the buffers of its caller."""
        nodes = list[Node]()
        for i, row in enumerate(self.spans[0]):
            columns = list[Node]()
            for j, column in enumerate(self.spans[1]):
                body = bodies[i, j]
                self.buffers += body.buffers
                times = row.count * column.count * self.batch * self.sizes["c"]
                self.operations += times * sum(map(_operations, body.leaves))
                columns.append(Loop(f"x{j}", 1, (Loop("c", 1, tuple(body.leaves)),)))
            nodes.append(Loop(f"y{i}", 1, tuple(columns)))
        if self.batch > 1:
            nodes = [Loop("n", 1, tuple(nodes))]
        # Tiles are computed in any order.
        nodes = [
            replace(node, kind="parallel") if isinstance(node, Loop) and self.sizes[node.axis] > 1 else node
            for node in nodes
        ]
        sizes = tuple(sorted(self.sizes.items()))
        return LoopTree(tuple(nodes), (), (*outside, *self.buffers), sizes)


def _operations(part: Leaf | Value) -> int:
    if isinstance(part, Leaf):
        return _operations(part.value) + (part.reduce is not None)
    return 1 + sum(map(_operations, part.args)) if isinstance(part, Call) else 0


@dataclass
class Epilogue:
    """Writes the statements of a program for one result of a tile.

    Args:
        nest: around it.
        body: that it is added to.
        program: that the statements are of, over axes n, y, x and k.
        statements: what is computed of the result.
        at: the kind of tiles.
        element: row and column of the result in its tile.
    """

    nest: TileNest
    body: Body
    program: Program
    statements: Sequence[Statement]
    at: tuple[int, int]
    element: tuple[int, int]
    known: dict[str, Value] = field(default_factory=dict[str, Value])

    def write(self, stand_in: str, result: Value) -> None:
        """Write all statements; `result` is the value of the tensor that is called `stand_in` in them."""
        accessed = [a.tensor for statement in self.statements for a in accesses(statement.value)]
        self.known[stand_in] = self.body.keep(result) if accessed.count(stand_in) > 1 else result
        for statement in self.statements:
            value = self._value(statement.value)
            name = statement.target.tensor
            if name in self.program.outputs:
                self.store(statement.target, value)
            else:
                self.known[name] = self.body.keep(value)

    def store(self, target: Access, value: Value) -> None:
        """Write a value to an output."""
        self.body.leaves.append(Leaf(self._ref(target), None, value))

    def _value(self, expr: Expr) -> Value:
        match expr:
            case Const():
                return expr
            case Apply(function, args):
                return Call(function, tuple(map(self._value, args)))
            case Access(tensor):
                return self.known[tensor] if tensor in self.known else self._ref(expr)

    def _ref(self, access: Access) -> Ref:
        steps, offset = dict[str, int](), 0
        strides = self.program.type[access.tensor].strides()
        for index, stride in zip(access.index, strides, strict=True):
            offset += index.offset * stride
            for axis, coefficient in index.terms:
                step = coefficient * stride
                if axis in "yx":
                    d = "yx".index(axis)
                    offset += step * self.element[d]
                    step *= self.nest.tile[d]
                name = "c" if axis == "k" else axis
                steps[name] = steps.get(name, 0) + step
        return self.nest.ref(access.tensor, offset, self.at, steps)


def outside_buffers(program: Program, stand_in: str = "") -> list[Buffer]:
    """Return the inputs of a program but one, and its outputs."""
    inputs = [name for name in program.inputs if name != stand_in]
    return [
        *(Buffer(n, program.type[n].dtype, program.type[n].size, "input") for n in inputs),
        *(Buffer(n, program.type[n].dtype, program.type[n].size, "output") for n in program.outputs),
    ]
