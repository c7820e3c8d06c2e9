"""Products and convolutions of elements of several numbers: integers of 8 bits, or bfloat16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from planish.levels.loops.lang.program import BFLOAT16X2, INT8X4, UINT8X4
from planish.network.ir import Network, Node
from planish.network.operators.builder import Axis, KernelBuilder
from planish.network.operators.contractions import spatial_names, window_steps

PACKED_CONV, PACKED_PRODUCT = "PackedConv", "PackedMatMul"
"""Operators of nodes that read a matrix [..., k] or an image [n, y, x, k] and weights [k, n] or [y, x, k, n].

Both are of elements of several numbers along k. A third input has by n what is added to a sum. With integers,
a fourth one has by n the scale of a sum.
"""
_TYPES: Mapping[str, tuple[str, str]] = {"int32": (UINT8X4, INT8X4), "uint32": (BFLOAT16X2, BFLOAT16X2)}
"""Type in which a network has the weights to those of the two factors in the program."""


def build_packed_product(network: Network, node: Node) -> KernelBuilder:
    """Build a product of matrices."""
    builder, out = KernelBuilder(network), network.shape(node.output)
    m = builder.axis("m", prod(out[:-1]))
    depth, columns = network.shape(node.inputs[1])
    k, n = builder.axis("k", depth), builder.axis("n", columns)
    read = _read(builder, node, builder.along([m, k]), builder.along([k, n]))
    rows = Axis(m, prod(out[:-1]), tuple(range(len(out) - 1)))
    return _scaled(builder, node, (rows, Axis(n, columns, (len(out) - 1,))), n, read)


def build_packed_convolution(network: Network, node: Node) -> KernelBuilder:
    """Build a convolution of images; attributes `strides` and `dilations`, and none of padding."""
    builder, out = KernelBuilder(network), network.shape(node.output)
    batch, *image, channels = network.shape(node.inputs[0])
    weights = network.shape(node.inputs[1])
    strides, dilations, _ = window_steps(node, tuple(image), weights[:2])
    n, k, c = (builder.axis(*p) for p in zip("nkc", (batch, out[1], channels), strict=True))
    axes = [Axis(n, batch, (0,)), Axis(k, out[1], (1,))]
    spatial, window = list[tuple[str, int]](), list[tuple[str, int]]()
    for d, (y, r) in enumerate(spatial_names(len(image))):
        builder.axis(y, out[d + 2])
        builder.axis(r, weights[d])
        axes.append(Axis(y, out[d + 2], (d + 2,)))
        spatial.append((builder.subscript({y: strides[d], r: dilations[d]}), image[d]))
        window += builder.along([r])
    source = [*builder.along([n]), *spatial, *builder.along([c])]
    read = _read(builder, node, source, [*window, *builder.along([c, k])])
    return _scaled(builder, node, builder.order_axes(axes, node.output), k, read)


def _read(
    builder: KernelBuilder, node: Node, source: list[tuple[str, int]], weights: list[tuple[str, int]]
) -> str:
    """Write the product of an element of the source and one of the weights."""
    first, second = builder.access(node.inputs[0], source), builder.access(node.inputs[1], weights)
    types = _TYPES[builder.network.types[node.inputs[1]].dtype]
    builder.dtypes |= {
        each.partition("[")[0]: dtype for each, dtype in zip((first, second), types, strict=True)
    }
    return f"{first}*{second}"


def _scaled(
    builder: KernelBuilder, node: Node, axes: Sequence[Axis], channel: str, read: str
) -> KernelBuilder:
    """Sum products, and scale the sums and add to them by channel."""
    total = builder.write("T", [axis.name for axis in axes], "+=", read)
    bias, *scale = (builder.access(name, builder.along([channel])) for name in node.inputs[2:])
    factors = "*".join([total, *scale])
    return builder.finish(builder.network.shape(node.output), axes, f"({factors}+{bias})")
