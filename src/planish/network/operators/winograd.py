"""Winograd's algorithm: convolutions by fewer products, between transforms of tiles.

A tile of m x m results of a convolution by a window of r x r is computed from m + r - 1 products in each
dimension, in place of m * r (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015)::

    Y = A^T [(G g G^T) * (B^T d B)] A

The transform of weights is computed once, in float64. That of the input, the products and that of the result
are kernels of their own. The products of all tiles at one of the (m + r - 1)^2 points are a product of
matrices. The transforms are loop trees whose bodies are unrolled sums of constant multiples: channels are
the vector axis, and tiles at an edge of the image, which read zeros or write less, have loops of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np

from planish.core import rng
from planish.levels.loops.ir import tree as ir
from planish.levels.loops.ir.tree import Buffer, Call, Leaf
from planish.levels.loops.lang.program import Const, Program
from planish.network.ir import Array, Network, Node, Shape, TensorType
from planish.network.operators.builder import OUTPUT, Axis, FixedTree, KernelBuilder
from planish.network.operators.tiles import Body, Epilogue, TileNest, Window, outside_buffers, spans_of

WINDOWS = (1, 3, 5, 7)
"""Extents of windows that are covered; along one of 1, nothing is transformed."""
POINTS: Mapping[int, tuple[Fraction, ...]] = {
    2: tuple(map(Fraction, ("0", "1", "-1"))),
    4: tuple(map(Fraction, ("0", "5/8", "-5/8", "3/2", "-3/2"))),
    6: tuple(map(Fraction, ("0", "1", "-1", "1/2", "-1/2", "2", "-2"))),
}
"""Results of a tile in a dimension, for a window of 3, to the finite points of interpolation; infinity is the
last one. A larger window has the points of a tile that is larger by as much.

Transforms need fewer operations where each point is there with both signs. Of such points that are multiples
of 1/8, none were found to have a smaller error by more than 1 %: for 4, it is two thirds of that of 0, 1, -1,
1/2, -2, and half of that of 0, 1, -1, 2, -2.
"""

Rows = tuple[tuple[Fraction, ...], ...]
FloatRows = tuple[tuple[float, ...], ...]


# Matrices


def covered_tiles(windows: Sequence[int]) -> list[int]:
    """List the results of a tile in each dimension for which there are points, for a window's extents."""
    return [tile for tile in POINTS if all(n == 1 or tile + n - 3 in POINTS for n in windows)]


@cache
def matrices(tile: int, window: int = 3) -> tuple[Rows, Rows, Rows]:
    """Return A^T, G and B^T of F(tile, window), by the Cook-Toom construction; F(1, 1) is a product."""
    if window == 1:
        one = ((Fraction(1),),)
        return one, one, one
    points = POINTS[tile + window - 3]
    size = len(points) + 1
    result = tuple((*(p**i for p in points), Fraction(int(i == tile - 1))) for i in range(tile))
    weights = [tuple(p**k / _product(p - q for q in points if q != p) for k in range(window)) for p in points]
    weights.append(tuple(Fraction(int(k == window - 1)) for k in range(window)))
    inputs = [_polynomial([q for q in points if q != p], size) for p in points]
    inputs.append(_polynomial(points, size))
    return result, tuple(weights), tuple(inputs)


@cache
def _float_matrices(tile: int, window: int) -> tuple[FloatRows, FloatRows, FloatRows]:
    """Return A^T, G and B^T; the fractions of A^T and B^T are of powers of two, which floats have exactly."""
    a, g, b = (tuple(tuple(map(float, row)) for row in rows) for rows in matrices(tile, window))
    return a, g, b


def _product(factors: Iterator[Fraction]) -> Fraction:
    found = Fraction(1)
    for factor in factors:
        found *= factor
    return found


def _polynomial(roots: Sequence[Fraction], size: int) -> tuple[Fraction, ...]:
    """Return the coefficients of the monic polynomial with these roots, the constant first."""
    found = [Fraction(1)]
    for root in roots:
        found = [a - root * b for a, b in zip([Fraction(0), *found], [*found, Fraction(0)], strict=True)]
    return tuple(found + [Fraction(0)] * (size - len(found)))


def transform_weights(weights: Array, tile: int) -> Array:
    """Transform weights [k, c, y, x] in float64, to float32 of [points, c, k]."""
    g, h = (np.array(matrices(tile, window)[1], np.float64) for window in weights.shape[2:])
    filters, channels = weights.shape[:2]
    taps = weights.transpose(2, 3, 1, 0).reshape(-1, channels * filters)
    # Row i * size + j is g[i, r] * h[j, s] of each tap: both sides are multiplied by in one product.
    found = np.kron(g, h) @ taps.astype(np.float64)
    return found.astype(np.float32).reshape(-1, channels, filters)


def tiles(extent: int, tile: int) -> int:
    """Return how many tiles cover an extent."""
    return -(-extent // tile)


# Loop trees


def _multiply(body: Body, rows: FloatRows, values: Sequence[ir.Value | None]) -> list[ir.Value | None]:
    """Multiply a constant matrix by values; None stands for zero.

    Where two columns, or two rows, differ in signs alone, sums and differences are shared.
    """
    rows, values = _pair_columns(body, rows, values)
    found: list[ir.Value | None] = [None] * len(rows)
    done = set[int]()
    for i, row in enumerate(rows):
        partner = next((j for j in range(i + 1, len(rows)) if _mirrored(row, rows[j])), None)
        if i in done:
            continue
        if partner is None or partner in done:
            found[i] = _sum(row, values)
            continue
        both = [[(a + sign * b) / 2 for a, b in zip(row, rows[partner], strict=True)] for sign in (1, -1)]
        even, odd = (_sum(part, values) for part in both)
        done |= {i, partner}
        if even is None or odd is None:
            found[i], found[partner] = _sum(row, values), _sum(rows[partner], values)
            continue
        even, odd = body.keep(even), body.keep(odd)
        found[i], found[partner] = Call("add", (even, odd)), Call("sub", (even, odd))
    return found


def _pair_columns(
    body: Body, rows: FloatRows, values: Sequence[ir.Value | None]
) -> tuple[FloatRows, Sequence[ir.Value | None]]:
    columns, kept = list(zip(*rows, strict=True)), list(values)
    for a in range(len(columns) - 1):
        b = a + 1
        left, right = columns[a], columns[b]
        x, y = kept[a], kept[b]
        signs = [(p == q, p == -q) for p, q in zip(left, right, strict=True)]
        if not all(map(any, signs)) or all(s for s, _ in signs) or x is None or y is None:
            continue
        kept[a], kept[b] = body.keep(Call("add", (x, y))), body.keep(Call("sub", (x, y)))
        columns[a] = tuple(p if same else 0.0 for p, (same, _) in zip(left, signs, strict=True))
        columns[b] = tuple(0.0 if same else p for p, (same, _) in zip(left, signs, strict=True))
    return tuple(zip(*columns, strict=True)), kept


def _multiply_both_sides(
    body: Body, left: FloatRows, right: FloatRows, values: Sequence[Sequence[ir.Value | None]]
) -> list[list[ir.Value | None]]:
    """Multiply a constant matrix by a matrix of values, and the product by the transpose of another one."""
    columns = [
        [None if v is None else body.keep(v) for v in _multiply(body, left, column)]
        for column in zip(*values, strict=True)
    ]
    return [_multiply(body, right, row) for row in zip(*columns, strict=True)]


def _mirrored(a: Sequence[float], b: Sequence[float]) -> bool:
    """Return whether rows differ in signs alone, and in some of them."""
    return a != b and all(x in (y, -y) for x, y in zip(a, b, strict=True)) and sum(x != 0 for x in a) > 2


def _sum(coefficients: Sequence[float], values: Sequence[ir.Value | None]) -> ir.Value | None:
    """Write a sum of multiples; the first is one that needs no product."""
    terms = [(c, v) for c, v in zip(coefficients, values, strict=True) if c and v is not None]
    terms.sort(key=lambda term: (term[0] != 1, abs(term[0]) != 1))
    if not terms:
        return None
    (first, value), *rest = terms
    found = value if first == 1 else Call("mul", (Const(first), value))
    for c, v in rest:
        if abs(c) == 1:
            found = Call("add" if c > 0 else "sub", (found, v))
        else:
            found = Call("add", (Call("mul", (Const(c), v)), found))
    return found


@dataclass(frozen=True)
class Geometry:
    """Extents of a convolution, in channels-last order.

    Args:
        batch: images.
        height: of the result.
        width: of the result.
        tile: results of a tile in each dimension in which the window has more than one row.
        window: rows and columns of the window.
    """

    batch: int
    height: int
    width: int
    tile: int
    window: tuple[int, int] = (3, 3)

    @property
    def extents(self) -> tuple[int, int]:
        """Return the rows and columns of results of a tile."""
        y, x = (self.tile if each > 1 else 1 for each in self.window)
        return y, x

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the points in each dimension."""
        y, x = (n + each - 1 for n, each in zip(self.extents, self.window, strict=True))
        return y, x

    @property
    def points(self) -> int:
        """Return how many points there are in all."""
        return self.sizes[0] * self.sizes[1]

    @property
    def grid(self) -> tuple[int, int]:
        """Return how many tiles there are in each dimension."""
        return tiles(self.height, self.extents[0]), tiles(self.width, self.extents[1])

    @property
    def expansion(self) -> float:
        """Return the points for each result."""
        return self.points / (self.extents[0] * self.extents[1])

    @property
    def has_several(self) -> bool:
        """Return whether there are several tiles in each dimension in which they have several results."""
        return all(count > 1 or n == 1 for count, n in zip(self.grid, self.extents, strict=True))

    def matrices(self, index: int) -> tuple[FloatRows, FloatRows]:
        """Return the matrices by which columns and rows are multiplied: A^T, G and B^T are 0, 1 and 2."""
        y, x = (_float_matrices(self.tile, each)[index] for each in self.window)
        return y, x

    @property
    def count(self) -> int:
        """Return how many tiles there are."""
        return self.batch * self.grid[0] * self.grid[1]


def input_transform_tree(
    geometry: Geometry, image: tuple[int, int, int], pads: tuple[int, int], names: tuple[str, str]
) -> FixedTree:
    """Build B^T d B of all tiles: [n, y, x, c] to [points, tiles, c].

    Args:
        geometry: of the convolution.
        image: height, width and channels of the input.
        pads: zeros before the first row, and before the first column.
        names: of the input's buffer, and of the result's.
    """
    (height, width, channels), sizes, extents = image, geometry.sizes, geometry.extents
    rows, columns = geometry.grid
    spans = (
        spans_of(rows, Window(extents[0], -pads[0], sizes[0], height)),
        spans_of(columns, Window(extents[1], -pads[1], sizes[1], width)),
    )
    nest, bodies = TileNest(geometry.batch, channels, extents, spans), dict[tuple[int, int], Body]()
    read = {"n": height * width * channels, "c": 1}
    read |= {"y": extents[0] * width * channels, "x": extents[1] * channels}
    write = {"n": rows * columns * channels, "y": columns * channels, "x": channels, "c": 1}
    for i, row in enumerate(spans[0]):
        for j, column in enumerate(spans[1]):
            body = bodies[i, j] = nest.body((i, j))
            values = [
                [
                    nest.ref(names[0], ((r - pads[0]) * width + s - pads[1]) * channels, (i, j), read)
                    if row.valid[0][r] and column.valid[0][s]
                    else None
                    for s in range(sizes[1])
                ]
                for r in range(sizes[0])
            ]
            for p, line in enumerate(_multiply_both_sides(body, *geometry.matrices(2), values)):
                for q, value in enumerate(line):
                    offset = (p * sizes[1] + q) * geometry.count * channels
                    target = nest.ref(names[1], offset, (i, j), write)
                    body.leaves.append(Leaf(target, None, Const(0.0) if value is None else value))
    outside = (
        Buffer(names[0], "float32", geometry.batch * height * width * channels, "input"),
        Buffer(names[1], "float32", geometry.points * geometry.count * channels, "output"),
    )
    return FixedTree(nest.tree(bodies, outside), nest.operations)


def output_transform_tree(geometry: Geometry, channels: int, program: Program, stand_in: str) -> FixedTree:
    """Build A^T M A of all tiles, and what follows it: [points, tiles, k] to [n, y, x, k].

    Args:
        geometry: of the convolution.
        channels: of the result.
        program: element-wise statements over axes n, y, x and k.
        stand_in: the tensor of the program that stands for the transform's result.
    """
    sizes, extents = geometry.sizes, geometry.extents
    rows, columns = geometry.grid
    spans = (
        spans_of(rows, Window(extents[0], 0, extents[0], geometry.height)),
        spans_of(columns, Window(extents[1], 0, extents[1], geometry.width)),
    )
    nest, bodies = TileNest(geometry.batch, channels, extents, spans), dict[tuple[int, int], Body]()
    read = {"n": rows * columns * channels, "y": columns * channels, "x": channels, "c": 1}
    for i, row in enumerate(spans[0]):
        for j, column in enumerate(spans[1]):
            body = bodies[i, j] = nest.body((i, j))
            values = [
                [
                    nest.ref(stand_in, (p * sizes[1] + q) * geometry.count * channels, (i, j), read)
                    for q in range(sizes[1])
                ]
                for p in range(sizes[0])
            ]
            results = _multiply_both_sides(body, *geometry.matrices(0), values)
            for r in range(extents[0]):
                for s in range(extents[1]):
                    result = results[r][s]
                    if row.valid[0][r] and column.valid[0][s] and result is not None:
                        site = (i, j), (r, s)
                        Epilogue(nest, body, program, program.statements, *site).write(stand_in, result)
    whole = geometry.points * geometry.count * channels
    outside = [Buffer(stand_in, "float32", whole, "input"), *outside_buffers(program, stand_in)]
    return FixedTree(nest.tree(bodies, outside), nest.operations)


# In a network

INPUT_TRANSFORM, OUTPUT_TRANSFORM = "WinogradInput", "WinogradOutput"
"""Operators of the nodes around the products; with the attributes `geometry` and `pads`."""
TRANSFORM_COST, WEIGHT_COST = 10.0, 7.0
"""Time to transform an element, and to read a weight from memory, in that of multiply-adds at the peak.

Measured on Zen 4 with AVX-512.
"""
LAYERS = 10
"""An algorithm may have this share of the tolerance as its error: the errors of layers add up."""
_SAMPLE_TILES, _SAMPLE_CHANNELS = 16, 16


_PARTS = ("tiles", "weights", "products")
"""Suffixes of a convolution's own tensors, after the name of its result."""


def convolution_of(name: str) -> str:
    """Return the result of the convolution that a tensor belongs to; any other is its own."""
    for part in _PARTS:
        name = name.removesuffix(f" {part}")
    return name


def describe_winograd(node: Node) -> str | None:
    """Name the part of Winograd's algorithm that a node computes; None where it is none."""
    if node.operator not in (INPUT_TRANSFORM, OUTPUT_TRANSFORM):
        return None
    geometry: Geometry = node.attributes["geometry"]
    part = "input" if node.operator == INPUT_TRANSFORM else "output"
    return f"Winograd F({geometry.tile},{max(geometry.window)}), {part}"


def rewrite_winograd(network: Network, tiles: Mapping[str, int]) -> Network:
    """Compute convolutions by Winograd's algorithm.

    Args:
        network: with its layouts.
        tiles: names of the results of convolutions that are covered to results of a tile in each dimension.
    """
    nodes, types, constants = list[Node](), dict(network.types), dict(network.constants)
    transformed = dict[tuple[str, int], Array]()
    for node in network.nodes:
        tile = tiles.get(node.output)
        if tile is None:
            nodes.append(node)
            continue
        x, out = node.inputs[0], node.output
        filters = network.shape(out)[1]
        geometry = geometry_of(network, node, tile)
        names = [f"{out} {part}" for part in _PARTS]
        channels, points = network.shape(x)[1], geometry.points
        types[names[0]] = TensorType((points, geometry.count, channels))
        types[names[1]] = TensorType((points, channels, filters))
        types[names[2]] = TensorType((points, geometry.count, filters))
        # The strips of an image have the same weights.
        key = node.inputs[1], tile
        if key not in transformed:
            transformed[key] = transform_weights(network.constants[node.inputs[1]], tile)
        constants[names[1]] = transformed[key]
        pads = tuple(node.attributes.get("pads") or [0] * 4)[:2]
        attributes = {"geometry": geometry, "pads": pads}
        nodes += [
            Node(INPUT_TRANSFORM, f"{node.name} input", (x,), names[0], attributes),
            Node("MatMul", f"{node.name} products", (names[0], names[1]), names[2]),
            Node(OUTPUT_TRANSFORM, node.name, (names[2], *node.inputs[2:]), out, attributes),
        ]
    return replace(network, nodes=tuple(nodes), types=types, constants=constants)


def list_allowed_tiles(network: Network, tolerance: float) -> dict[str, list[int]]:
    """Return the tiles by which convolutions may be computed, by the names of their results.

    Args:
        network: with its layouts.
        tolerance: largest difference of an output, as a share of its largest number. An algorithm whose
            error, on a sample of inputs and a layer's own weights, exceeds its share of it is not allowed.
    """
    found = dict[str, list[int]]()
    for node in network.nodes:
        if _is_covered(network, node):
            weights = network.constants[node.inputs[1]]
            tiles = covered_tiles(weights.shape[2:])
            tiles = [tile for tile in tiles if geometry_of(network, node, tile).has_several]
            tiles = [tile for tile in tiles if error_of(weights, tile) <= tolerance / LAYERS]
            found |= {node.output: tiles} if tiles else {}
    return found


def expect_tiles(network: Network, tolerance: float, weight_cost: float = WEIGHT_COST) -> dict[str, int]:
    """Return the tiles of convolutions for which Winograd's algorithm is expected to be the fastest.

    Args:
        network: with its layouts.
        tolerance: as of `list_allowed_tiles`.
        weight_cost: time to read a weight from memory, in that of multiply-adds at the peak.
    """
    covered = [node for node in network.nodes if _is_covered(network, node)]
    found = {node.output: _tile_for(network, node, tolerance, weight_cost) for node in covered}
    return {name: tile for name, tile in found.items() if tile is not None}


def _tile_for(network: Network, node: Node, tolerance: float, weight_cost: float) -> int | None:
    """Return the tile of the algorithm that is expected to be the fastest; None for the direct one."""
    weights, out = network.constants[node.inputs[1]], network.shape(node.output)
    filters, channels = weights.shape[:2]
    taps = weights[0, 0].size
    costs: dict[int | None, float] = {None: channels * filters * taps * (_pixels(out) + weight_cost)}
    for tile in covered_tiles(weights.shape[2:]):
        geometry = geometry_of(network, node, tile)
        if not geometry.has_several:
            continue
        products = channels * filters * (geometry.count + weight_cost)
        transforms = TRANSFORM_COST * geometry.count * (channels + filters)
        costs[tile] = geometry.points * (products + transforms)
    for tile in sorted(costs, key=lambda each: costs[each]):
        if tile is None or error_of(weights, tile) <= tolerance / LAYERS:
            return tile
    return None


def geometry_of(network: Network, node: Node, tile: int) -> Geometry:
    """Return the extents of a convolution for a tile."""
    batch, _, height, width = network.shape(node.output)
    rows, columns = network.shape(node.inputs[1])[2:]
    return Geometry(batch, height, width, tile, (rows, columns))


def _pixels(shape: Shape) -> int:
    return shape[0] * shape[2] * shape[3]


def _is_covered(network: Network, node: Node) -> bool:
    if node.operator != "Conv" or node.inputs[1] not in network.constants:
        return False
    if not {node.inputs[0], node.output} <= network.channels_last:
        return False
    weights, attributes = network.constants[node.inputs[1]], node.attributes
    plain = attributes.get("group", 1) == 1 and attributes.get("auto_pad", "NOTSET") == "NOTSET"
    ones = all(set(attributes.get(name) or [1]) == {1} for name in ("strides", "dilations"))
    return set(weights.shape[2:]) <= set(WINDOWS) and max(weights.shape[2:]) > 1 and plain and ones


def error_of(weights: Array, tile: int) -> float:
    """Return the error of the algorithm in float32, as a share of the largest result.

    It is measured against float64, with some of the filters, on random inputs.
    """
    window = weights.shape[2:]
    geometry = Geometry(_SAMPLE_TILES, 1, 1, tile, (window[0], window[1]))
    some, sizes = weights[:_SAMPLE_CHANNELS], geometry.sizes
    x = rng(_SAMPLE_TILES).standard_normal((_SAMPLE_TILES, *sizes, weights.shape[1])).astype(np.float32)
    u = transform_weights(some, tile)
    a, b = ([np.array(each, np.float32) for each in geometry.matrices(index)] for index in (0, 2))
    v = np.einsum("ip,tpqc,jq->ijtc", b[0], x, b[1], optimize=True)
    m = np.matmul(v.reshape(geometry.points, _SAMPLE_TILES, -1), u).reshape(*sizes, _SAMPLE_TILES, -1)
    found = np.einsum("ip,pqtk,jq->tijk", a[0], m, a[1], optimize=True)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), window, axis=(1, 2))
    right = np.einsum("tijcrs,kcrs->tijk", windows, some.astype(np.float64), optimize=True)
    return float(np.abs(found - right).max() / max(1e-30, np.abs(right).max()))


def _begin_transform(network: Network, node: Node) -> tuple[KernelBuilder, Geometry]:
    geometry: Geometry = node.attributes["geometry"]
    builder = KernelBuilder(network)
    builder.axis("n", geometry.batch)
    return builder, geometry


def build_input_transform(network: Network, node: Node) -> KernelBuilder:
    """Build the transform of an input."""
    builder, geometry = _begin_transform(network, node)
    _, channels, height, width = network.shape(node.inputs[0])
    sizes, pads = geometry.sizes, node.attributes["pads"]
    for name, extent in zip("pqrsuvc", (*sizes, *sizes, *geometry.grid, channels), strict=True):
        builder.axis(name, extent)
    subscripts = [
        *builder.along("nc"),
        (builder.subscript({"u": geometry.extents[0], "r": 1}, -pads[0]), height),
        (builder.subscript({"v": geometry.extents[1], "s": 1}, -pads[1]), width),
    ]
    factors = [builder.access(node.inputs[0], subscripts, 0.0, range(4))]
    for index, matrix, size in zip(("p,r", "q,s"), geometry.matrices(2), sizes, strict=True):
        if size > 1:
            name = f"B {size} {geometry.tile}"
            builder.network = builder.network.with_constant(name, np.array(matrix, np.float32))
            factors.insert(0, f"{builder.operand(name, (size, size))}[{index}]")
    axes = [Axis(a, builder.sizes[a], (d,)) for a, d in zip("pqnuvc", (0, 0, 1, 1, 1, 2), strict=True)]
    result = builder.write("T", [a.name for a in axes], "+=", "*".join(factors))
    names = builder.operand(node.inputs[0], _stored(network, node.inputs[0])), OUTPUT
    builder.make_tree = lambda _: input_transform_tree(geometry, (height, width, channels), pads, names)
    return builder.finish(network.shape(node.output), axes, result)


def _stored(network: Network, name: str) -> Shape:
    """Return the extents of a tensor as they are in memory, without those of 1."""
    return tuple(network.shape(name)[d] for d in network.order(name) if network.shape(name)[d] > 1)


def build_output_transform(network: Network, node: Node) -> KernelBuilder:
    """Build the transform of a result, with its bias."""
    builder, geometry = _begin_transform(network, node)
    out = network.shape(node.output)
    stand_in = f"W{geometry.tile}" + "".join(f"_{n}" for n in geometry.window if set(geometry.window) != {3})
    axes = [Axis(builder.axis(a, out[d]), out[d], (d,)) for a, d in zip("nyxk", (0, 2, 3, 1), strict=True)]
    kept = tuple(axis for axis in axes if axis.extent > 1)
    builder.operands[stand_in] = network.root(node.inputs[0]), tuple(axis.extent for axis in kept)
    result = f"{stand_in}[{','.join(axis.name for axis in kept)}]"
    if node.has(1):
        result = f"({result}+{builder.access(node.inputs[1], builder.along('k'))})"
    builder.make_tree = lambda program: output_transform_tree(geometry, out[1], program, stand_in)
    return builder.finish(out, kept, result)
