"""Transposed convolutions as a product of matrices, and sums of the taps that meet.

Each element of the input gives all taps of its window, [c] x [c, r * s * k], in one product. A result is the
sum of those that reach it, a stride apart: it gathers them, tile by tile, and is written once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from planish.levels.loops.ir.tree import Buffer, Call
from planish.levels.loops.ir.tree import Value as Element
from planish.levels.loops.lang.program import Const, Program
from planish.network.drafts import Axis, Draft, Transform
from planish.network.model import VIEW, Network, Node, Value
from planish.network.tiles import Body, Epilogue, TileNest, Window, outside_buffers, spans_of

SUM = "TapSum"
"""The operator of the node behind the products; with the attribute `taps`."""


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


def with_tap_sums(network: Network) -> Network:
    """Compute transposed convolutions whose windows overlap as products of matrices and sums."""
    nodes, values, constants = list[Node](), dict(network.values), dict(network.constants)
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
        values |= {name: Value(shape) for name, shape in zip(names, shapes, strict=True)}
        nodes += [
            Node(VIEW, f"{node.name} rows", node.inputs[:1], names[0]),
            Node("MatMul", f"{node.name} products", (names[0], names[1]), names[2]),
            Node(SUM, node.name, (names[2], *node.inputs[2:]), node.output, {"taps": taps}),
        ]
    return replace(network, nodes=tuple(nodes), values=values, constants=constants)


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


def tap_sum_draft(network: Network, node: Node) -> Draft:
    """Draft the sums, with their bias."""
    taps: Taps = node.attributes["taps"]
    draft, out = Draft(network), network.shape(node.output)
    axes = [Axis(draft.axis(a, out[d]), out[d], (d,)) for a, d in zip("nyxk", (0, 2, 3, 1), strict=True)]
    kept = tuple(axis for axis in axes if axis.extent > 1)
    # It has the name of what the sums are, in place of a statement that the notation has no word for.
    stand_in = "S" + "_".join(
        str(n) for pair in (taps.shape, taps.window, taps.strides, taps.pads) for n in pair
    )
    draft.operands[stand_in] = network.root(node.inputs[0]), tuple(axis.extent for axis in kept)
    result = f"{stand_in}[{','.join(axis.name for axis in kept)}]"
    if node.has(1):
        result = f"({result}+{draft.access(node.inputs[1], [(draft.linear({'k': 1}), out[1])])})"
    draft.transform = lambda program: _tree(taps, out, program, stand_in)
    return draft.finish(out, kept, result)


def _tree(taps: Taps, out: tuple[int, ...], program: Program, stand_in: str) -> Transform:
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
    return Transform(nest.tree(bodies, outside), nest.operations)
