"""Depthwise convolutions of images that are stored with channels last.

Each tile is computed for a vector of channels at a time: a row of inputs is loaded once, and multiplied by
all taps that meet it, into results in registers. There is no copy of the input with edges.
"""

from __future__ import annotations

from itertools import compress, product

import numpy as np

from planish.levels.loops.ir.tree import Call, Leaf, Ref
from planish.levels.loops.lang.program import Const, Program
from planish.network.contractions import pads_of
from planish.network.drafts import Axis, Draft, Transform
from planish.network.model import Network, Node
from planish.network.reductions import with_constant
from planish.network.tiles import Body, Epilogue, TileNest, Window, outside_buffers, spans_of

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


def depthwise_draft(network: Network, node: Node) -> Draft:
    """Draft a depthwise convolution, with its bias."""
    shape, out = network.shape(node.inputs[0]), network.shape(node.output)
    taps = network.constants[node.inputs[1]]
    window = taps.shape[2:]
    strides = tuple(node.attributes.get("strides") or (1, 1))
    dilations = tuple(node.attributes.get("dilations") or (1, 1))
    pads = [before for before, _ in pads_of(node, shape[2:], window, strides, dilations)]
    name = f"{node.inputs[1]} taps"
    network = with_constant(network, name, np.ascontiguousarray(np.moveaxis(taps[:, 0], 0, -1)))
    draft = Draft(network)
    for axis, extent in zip("nkyxrs", (*out[:2], *out[2:], *window), strict=True):
        draft.axis(axis, extent)
    subscripts = [(draft.linear({"n": 1}), shape[0]), (draft.linear({"k": 1}), shape[1])]
    subscripts += [
        (draft.linear({y: strides[d], r: dilations[d]}, -pads[d]), shape[d + 2])
        for d, (y, r) in enumerate(("yr", "xs"))
    ]
    read = draft.access(node.inputs[0], subscripts, 0.0, range(4))
    tap = draft.access(name, [(draft.linear({a: 1}), draft.sizes[a]) for a in "rsk"])
    axes = [Axis(a, draft.sizes[a], (d,)) for a, d in zip("nyxk", (0, 2, 3, 1), strict=True)]
    result = draft.write("T", [axis.name for axis in axes], "+=", f"{read}*{tap}")
    if node.has(2):
        result = f"({result}+{draft.access(node.inputs[2], [(draft.linear({'k': 1}), out[1])])})"
    builder = _Builder(shape, out, (window[0], window[1]), (strides, dilations, tuple(pads)))
    draft.transform = builder.transform
    return draft.finish(out, tuple(axis for axis in axes if axis.extent > 1), result)


Pair = tuple[int, ...]


class _Builder:
    """Builds the tree of a convolution.

    Args:
        shape: of the input.
        out: of the result.
        window: rows and columns of the taps.
        steps: strides, dilations, and zeros before the image.
    """

    def __init__(
        self, shape: Pair, out: Pair, window: tuple[int, int], steps: tuple[Pair, Pair, Pair]
    ) -> None:
        self.shape, self.out, self.window = shape, out, window
        self.strides, self.dilations, self.pads = steps
        width = min(_WIDTHS, key=lambda n: (-(-out[3] // n) * n / out[3], _WIDTHS.index(n)))
        width = min(width, out[3])
        self.tile = min(out[2], max(1, RESULTS // width)), width

    def transform(self, program: Program) -> Transform:
        """Build the tree of a program: the convolution, and element-wise statements behind it."""
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
                bodies[i, j] = self._body(nest, (i, j), program, (names[0], names[1]))
        return Transform(nest.tree(bodies, outside_buffers(program)), nest.operations)

    def _reach(self, d: int) -> int:
        """Return how many inputs a tile reaches over, in a dimension."""
        return (self.tile[d] - 1) * self.strides[d] + (self.window[d] - 1) * self.dilations[d] + 1

    def _body(self, nest: TileNest, at: tuple[int, int], program: Program, names: tuple[str, str]) -> Body:
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
                        tap = nest.ref(names[1], (r * self.window[1] + s) * channels, at, {"c": 1})
                        self._add(body, results, (i, j), Call("mul", (value, tap)))
        first, *rest = program.statements
        for element in product(
            compress(range(self.tile[0]), rows[1]), compress(range(self.tile[1]), columns[1])
        ):
            # Where all of its window is outside of the image, there is no product.
            result = results[element] if element in results else Const(0.0)
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
