"""Depthwise and transposed convolutions, and pooling, of images whose channels are last, over tiles.

Each tile is computed for a vector of channels at a time: a row of inputs is loaded once, and multiplied by
all taps that meet it, into results in registers. There is no copy of the input with edges.

Transposed convolutions as a product of matrices, and sums of the taps that meet.

Each element of the input gives all taps of its window, [c] x [c, r * s * k], in one product. A result is the
sum of those that reach it, a stride apart: it gathers them, tile by tile, and is written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress, product
from math import inf, prod

import numpy as np

from planish.levels.loops.ir.tree import Buffer, Call, Leaf, Ref
from planish.levels.loops.ir.tree import Value as Element
from planish.levels.loops.lang.program import Const, Program
from planish.network.ir import VIEW, Network, Node, TensorType
from planish.network.operators.builder import Axis, FixedTree, KernelBuilder
from planish.network.operators.contractions import WindowSteps, window_steps
from planish.network.operators.reductions import build_pooling
from planish.network.operators.tiles import Body, Epilogue, TileNest, Window, outside_buffers, spans_of

RESULTS = 14
"""Results of a tile, at most: registers hold these, a row of inputs and a tap."""
_WIDTHS = (7, 6, 5, 8, 4)
"""Columns of a tile, the preferred first."""


def is_depthwise(network: Network, node: Node) -> bool:
    """Return whether a node is a depthwise convolution of images whose channels are last."""
    if node.operator != "Conv" or node.inputs[1] not in network.constants:
        return False
    images = {node.inputs[0], node.output} <= network.channels_last
    channels, taps = network.shape(node.inputs[0])[1], network.shape(node.inputs[1])
    # A subscript of one axis alone would be of a whole dimension.
    images = images and min(*taps[2:], *network.shape(node.output)[2:]) > 1
    return images and node.attributes.get("group", 1) == channels == taps[0]


def build_depthwise(network: Network, node: Node) -> KernelBuilder:
    """Build a depthwise convolution, with its bias."""
    shape, out = network.shape(node.inputs[0]), network.shape(node.output)
    taps = network.constants[node.inputs[1]]
    window = taps.shape[2:]
    steps = window_steps(node, shape[2:], window)
    name = f"{node.inputs[1]} taps"
    network = network.with_constant(name, np.ascontiguousarray(np.moveaxis(taps[:, 0], 0, -1)))
    builder = KernelBuilder(network)
    for axis, extent in zip("nkyxrs", (*out[:2], *out[2:], *window), strict=True):
        builder.axis(axis, extent)
    subscripts = builder.along("nk")
    subscripts += [
        (builder.subscript({y: steps.strides[d], r: steps.dilations[d]}, -steps.pads[d][0]), shape[d + 2])
        for d, (y, r) in enumerate(("yr", "xs"))
    ]
    read = builder.access(node.inputs[0], subscripts, 0.0, range(4))
    tap = builder.access(name, builder.along("rsk"))
    axes = [Axis(a, builder.sizes[a], (d,)) for a, d in zip("nyxk", (0, 2, 3, 1), strict=True)]
    result = builder.write("T", [axis.name for axis in axes], "+=", f"{read}*{tap}")
    if node.has(2):
        result = f"({result}+{builder.access(node.inputs[2], builder.along('k'))})"
    tree = _WindowTree(shape, out, (window[0], window[1]), steps)
    builder.make_tree = tree.build
    return builder.finish(out, axes, result)


MOST_TAPS = 25
"""Elements of a window of pooling over tiles: the body is unrolled."""


def is_tiled_pooling(network: Network, node: Node) -> bool:
    """Return whether a node is pooling, by a small window, of images whose channels are last."""
    if node.operator not in ("MaxPool", "AveragePool"):
        return False
    window = node.attributes["kernel_shape"]
    images = {node.inputs[0], node.output} <= network.channels_last
    return images and len(window) == 2 and 1 < prod(window) <= MOST_TAPS


def build_tiled_pooling(network: Network, node: Node) -> KernelBuilder:
    """Build MaxPool and AveragePool."""
    builder, shape = build_pooling(network, node), network.shape(node.inputs[0])
    window = tuple(node.attributes["kernel_shape"])
    steps, combine = window_steps(node, shape[2:], window), "max" if node.operator == "MaxPool" else "add"
    tree = _WindowTree(shape, network.shape(node.output), (window[0], window[1]), steps, combine)
    builder.make_tree = tree.build
    return builder


Pair = tuple[int, ...]


class _WindowTree:
    """Builds the tree of what combines the elements of windows.

    Args:
        shape: of the input.
        out: of the result.
        window: its rows and columns.
        steps: how the window moves.
        combine: how the elements are combined; those of a convolution are multiplied by taps and added.
    """

    def __init__(
        self, shape: Pair, out: Pair, window: tuple[int, int], steps: WindowSteps, combine: str = ""
    ) -> None:
        self.combine = combine
        self.shape, self.out, self.window = shape, out, window
        self.strides, self.dilations, pads = steps
        self.pads = [before for before, _ in pads]
        width = min(_WIDTHS, key=lambda n: (-(-out[3] // n) * n / out[3], _WIDTHS.index(n)))
        width = min(width, out[3])
        self.tile = min(out[2], max(1, RESULTS // width)), width

    def build(self, program: Program) -> FixedTree:
        """Build the tree of a program: the convolution, and element-wise statements after it."""
        first = program.statements[0]
        names = [name for name in program.inputs if name in str(first.value)]
        counts = [-(-self.out[d + 2] // self.tile[d]) for d in range(2)]
        spans = [
            spans_of(
                counts[d],
                Window(self.tile[d] * self.strides[d], -self.pads[d], self._reach(d), self.shape[d + 2]),
                Window(self.tile[d], 0, self.tile[d], self.out[d + 2]),
            )
            for d in range(2)
        ]
        nest = TileNest(self.out[0], self.out[1], self.tile, (spans[0], spans[1]))
        bodies = dict[tuple[int, int], Body]()
        for i in range(len(spans[0])):
            for j in range(len(spans[1])):
                bodies[i, j] = self._body(nest, (i, j), program, names)
        return FixedTree(nest.tree(bodies, outside_buffers(program)), nest.operations)

    def _reach(self, d: int) -> int:
        """Return how many inputs a tile reaches over, in a dimension."""
        return (self.tile[d] - 1) * self.strides[d] + (self.window[d] - 1) * self.dilations[d] + 1

    def _body(self, nest: TileNest, at: tuple[int, int], program: Program, names: Sequence[str]) -> Body:
        body, results = nest.body(at), dict[tuple[int, int], Ref]()
        channels, width = self.shape[1], self.shape[3]
        rows, columns = (spans[i].valid for spans, i in zip(nest.spans, at, strict=True))
        steps = {
            "n": self.shape[2] * width * channels,
            "y": self.tile[0] * self.strides[0] * width * channels,
            "x": self.tile[1] * self.strides[1] * channels,
            "c": 1,
        }
        for row in range(self._reach(0)):
            for i, r in self._meeting(0, row):
                for s in range(self.window[1]):
                    for j in range(self.tile[1]):
                        column = j * self.strides[1] + s * self.dilations[1]
                        inside = rows[0][row] and columns[0][column]
                        if not (inside and rows[1][i] and columns[1][j]):
                            continue
                        offset = (row - self.pads[0]) * width + column - self.pads[1]
                        value = nest.ref(names[0], offset * channels, at, steps)
                        if self.combine:
                            known = results.get((i, j))
                            results[i, j] = body.keep(Call(self.combine, (known, value))) if known else value
                            continue
                        tap = nest.ref(names[1], (r * self.window[1] + s) * channels, at, {"c": 1})
                        self._add(body, results, (i, j), Call("mul", (value, tap)))
        first, *rest = program.statements
        for element in product(
            compress(range(self.tile[0]), rows[1]), compress(range(self.tile[1]), columns[1])
        ):
            # Where all of its window is outside of the image, there is nothing to combine.
            result = results.get(element, Const(-inf if self.combine == "max" else 0.0))
            epilogue = Epilogue(nest, body, program, rest, at, element)
            if first.target.tensor in program.outputs:
                epilogue.store(first.target, result)
            else:
                epilogue.write(first.target.tensor, result)
        return body

    def _meeting(self, d: int, position: int) -> list[tuple[int, int]]:
        """List the results, and their taps, that an input is multiplied for, in a dimension."""
        return [
            (i, r)
            for i in range(self.tile[d])
            for r in range(self.window[d])
            if i * self.strides[d] + r * self.dilations[d] == position
        ]

    def _add(
        self, body: Body, results: dict[tuple[int, int], Ref], element: tuple[int, int], value: Call
    ) -> None:
        if element in results:
            body.leaves.append(Leaf(results[element], "add", value))
        else:
            results[element] = body.keep(value)


SUM = "TapSum"
"""The operator of the node after the products; with the attribute `taps`."""


@dataclass(frozen=True)
class Taps:
    """Extents of a transposed convolution.

    Args:
        shape: rows and columns of the input.
        window: rows and columns of the taps.
        strides: in both dimensions.
        pads: results that are cut off before the first row and column.
    """

    shape: tuple[int, int]
    window: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int]

    def meeting(self, d: int, element: int) -> list[tuple[int, int]]:
        """List the inputs, from a tile's own on, and their taps that reach an element of the tile."""
        position = element + self.pads[d]
        return [
            ((position - r) // self.strides[d], r)
            for r in range(self.window[d])
            if (position - r) % self.strides[d] == 0
        ]


def rewrite_transposed_convolutions(network: Network) -> Network:
    """Compute transposed convolutions whose windows overlap as products of matrices and sums."""
    nodes, types, constants = list[Node](), dict(network.types), dict(network.constants)
    for node in network.nodes:
        taps = _taps_of(network, node)
        if taps is None:
            nodes.append(node)
            continue
        (batch, channels, *_), (_, filters, *_) = network.shape(node.inputs[0]), network.shape(node.output)
        names = [f"{node.output} {part}" for part in ("rows", "weights", "taps")]
        rows, columns = batch * taps.shape[0] * taps.shape[1], taps.window[0] * taps.window[1] * filters
        weights = np.moveaxis(network.constants[node.inputs[1]], 1, -1).reshape(channels, columns)
        constants[names[1]] = np.ascontiguousarray(weights)
        shapes = (rows, channels), (channels, columns), (rows, columns)
        types |= {name: TensorType(shape) for name, shape in zip(names, shapes, strict=True)}
        nodes += [
            Node(VIEW, f"{node.name} rows", node.inputs[:1], names[0]),
            Node("MatMul", f"{node.name} products", (names[0], names[1]), names[2]),
            Node(SUM, node.name, (names[2], *node.inputs[2:]), node.output, {"taps": taps}),
        ]
    return replace(network, nodes=tuple(nodes), types=types, constants=constants)


def _taps_of(network: Network, node: Node) -> Taps | None:
    """Return the extents of a node that is covered, and whose windows overlap; None for any other."""
    if node.operator != "ConvTranspose" or node.inputs[1] not in network.constants:
        return None
    x, window = node.inputs[0], network.shape(node.inputs[1])[2:]
    shape, attributes = network.shape(x), node.attributes
    # As rows of channels, which an image with one pixel is in any layout.
    rows = x in network.channels_last or shape[2:] == (1, 1)
    ones = attributes.get("group", 1) == 1 and set(attributes.get("dilations") or [1]) == {1}
    if len(window) != 2 or not (rows and ones) or node.output not in network.channels_last:
        return None
    strides, pads = attributes.get("strides") or [1, 1], attributes.get("pads") or [0] * 4
    overlap = any(w > s for w, s in zip(window, strides, strict=True))
    plain = attributes.get("auto_pad", "NOTSET") in ("NOTSET", "") and not attributes.get("output_shape")
    if not (overlap and plain):
        return None
    pairs = ((values[0], values[1]) for values in (shape[2:], window, strides, pads))
    return Taps(*pairs)


def build_tap_sum(network: Network, node: Node) -> KernelBuilder:
    """Build the sums, with their bias."""
    taps: Taps = node.attributes["taps"]
    builder, out = KernelBuilder(network), network.shape(node.output)
    axes = [Axis(builder.axis(a, out[d]), out[d], (d,)) for a, d in zip("nyxk", (0, 2, 3, 1), strict=True)]
    kept = tuple(axis for axis in axes if axis.extent > 1)
    # It has the name of what the sums are, in place of a statement that the notation has no word for.
    stand_in = "S" + "_".join(
        str(n) for pair in (taps.shape, taps.window, taps.strides, taps.pads) for n in pair
    )
    builder.operands[stand_in] = network.root(node.inputs[0]), tuple(axis.extent for axis in kept)
    result = f"{stand_in}[{','.join(axis.name for axis in kept)}]"
    if node.has(1):
        result = f"({result}+{builder.access(node.inputs[1], builder.along('k'))})"
    builder.make_tree = lambda program: _tree(taps, out, program, stand_in)
    return builder.finish(out, kept, result)


def _tree(taps: Taps, out: tuple[int, ...], program: Program, stand_in: str) -> FixedTree:
    counts = [-(-out[d + 2] // taps.strides[d]) for d in range(2)]
    reach = list[tuple[int, int]]()
    for d in range(2):
        moves = [move for i in range(taps.strides[d]) for move, _ in taps.meeting(d, i)]
        reach.append((min(moves), max(moves) - min(moves) + 1))
    spans = [
        spans_of(
            counts[d],
            Window(1, reach[d][0], reach[d][1], taps.shape[d]),
            Window(taps.strides[d], 0, taps.strides[d], out[d + 2]),
        )
        for d in range(2)
    ]
    filters, width = out[1], taps.shape[1]
    row = taps.window[0] * taps.window[1] * filters
    steps = {"n": taps.shape[0] * width * row, "y": width * row, "x": row, "c": 1}
    nest = TileNest(out[0], filters, taps.strides, (spans[0], spans[1]))
    bodies = dict[tuple[int, int], Body]()
    for at in product(range(len(spans[0])), range(len(spans[1]))):
        body = bodies[at] = nest.body(at)
        valid = [spans[d][i].valid for d, i in enumerate(at)]
        for element in product(*(range(stride) for stride in taps.strides)):
            if not all(valid[d][1][element[d]] for d in range(2)):
                continue
            found: Element | None = None
            for (y, r), (x, s) in product(*(taps.meeting(d, element[d]) for d in range(2))):
                if valid[0][0][y - reach[0][0]] and valid[1][0][x - reach[1][0]]:
                    offset = (y * width + x) * row + (r * taps.window[1] + s) * filters
                    term = nest.ref(stand_in, offset, at, steps)
                    found = term if found is None else Call("add", (found, term))
            epilogue = Epilogue(nest, body, program, program.statements, at, (element[0], element[1]))
            epilogue.write(stand_in, Const(0.0) if found is None else found)
    whole = out[0] * taps.shape[0] * width * row
    outside = [Buffer(stand_in, "float32", whole, "input"), *outside_buffers(program, stand_in)]
    return FixedTree(nest.tree(bodies, outside), nest.operations)
