"""Convolutions, products of matrices and Einsum of ONNX, as kernels of `loops`."""

from __future__ import annotations

import string
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from planish.network.ir import Network, Node, Shape
from planish.network.operators.builder import PART, Axis, KernelBuilder, align_shape, number

_SPATIAL = "zyx"
_WINDOW = "ors"


def spatial_names(rank: int) -> list[tuple[str, str]]:
    """Return the axes of an image and of a window in it, of up to three dimensions."""
    return list(zip(_SPATIAL[-rank:], _WINDOW[-rank:], strict=True))


class WindowSteps(NamedTuple):
    """Movement of a window over an image.

    Args:
        strides: in each spatial dimension.
        dilations: in each of them.
        pads: elements before and after the image, in each of them.
    """

    strides: Shape
    dilations: Shape
    pads: Sequence[tuple[int, int]]


def window_steps(node: Node, shape: Shape, kernel: Shape) -> WindowSteps:
    """Return the strides, dilations and padding of a convolution or of pooling.

    Args:
        node: with the attributes `strides`, `dilations`, `pads` and `auto_pad`.
        shape: extents of the image.
        kernel: of the window.
    """
    rank, auto = len(shape), node.attributes.get("auto_pad", "NOTSET")
    strides = tuple(node.attributes.get("strides") or [1] * rank)
    dilations = tuple(node.attributes.get("dilations") or [1] * rank)
    if auto in ("NOTSET", ""):
        pads = node.attributes.get("pads") or [0] * (2 * rank)
        return WindowSteps(strides, dilations, list(zip(pads[:rank], pads[rank:], strict=True)))
    found = list[tuple[int, int]]()
    for n, k, s, d in zip(shape, kernel, strides, dilations, strict=True):
        total = 0 if auto == "VALID" else max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n)
        small, large = total // 2, total - total // 2
        found.append((small, large) if auto != "SAME_LOWER" else (large, small))
    return WindowSteps(strides, dilations, found)


def build_convolution(network: Network, node: Node) -> KernelBuilder:
    """Build a convolution of any rank up to three, with groups, strides, dilations and padding."""
    builder, shape, out = KernelBuilder(network), network.shape(node.inputs[0]), network.shape(node.output)
    weights = network.shape(node.inputs[1])
    rank, groups = len(shape) - 2, node.attributes.get("group", 1)
    if not 1 <= rank <= 3:
        raise node.refuse(f"a convolution over {rank} dimensions is not covered")
    strides, _, pads = steps = window_steps(node, shape[2:], weights[2:])
    inner, outer = weights[1], weights[0] // groups
    n, g, k, c = (builder.axis(*p) for p in zip("ngkc", (shape[0], groups, outer, inner), strict=True))
    pointwise = prod(weights[2:]) == 1 and not any(map(any, pads)) and prod(strides) == 1
    if pointwise:
        p = builder.axis("p", prod(out[2:]))
        spatial = builder.along([p])
        image, window = [Axis("p", prod(out[2:]), tuple(range(2, len(out))))], [("0", 1)]
    else:
        spatial, image, window = _windows(builder, shape, out, weights, steps)
    padded = not pointwise and any(map(any, pads))
    dims = [0, 1, 1, *((2,) if pointwise else range(2, 2 + rank))]
    read = builder.access(
        node.inputs[0], [*builder.along([n, g, c]), *spatial], 0.0 if padded else None, dims
    )
    weight = builder.access(node.inputs[1], [*builder.along([g, k, c]), *window])
    axes = (Axis(n, shape[0], (0,)), Axis(g, groups, (1,)), Axis(k, outer, (1,)), *image)
    axes = builder.order_axes(axes, node.output)
    result = builder.write("T", [axis.name for axis in axes], "+=", f"{read}*{weight}")
    return _with_bias(builder, node, out, axes, result)


GATED = "GatedConv"
"""The operator of a pointwise convolution whose image is multiplied by its last input, for each channel."""


def build_gated_convolution(network: Network, node: Node) -> KernelBuilder:
    """Build a pointwise convolution of one image whose weights are multiplied by a gate in each call.

    They have fewer elements than the image, and (x[p, c] * g[c]) * w[c, k] is x[p, c] * (g[c] * w[c, k]).
    """
    image, gate, out = node.inputs[0], node.inputs[-1], network.shape(node.output)
    weights = network.constants[node.inputs[1]]
    name = f"{node.inputs[1]} by channel"
    builder = KernelBuilder(network.with_constant(name, np.ascontiguousarray(weights[:, :, 0, 0].T)))
    p, c, k = (
        builder.axis(*pair) for pair in zip("pck", (prod(out[2:]), weights.shape[1], out[1]), strict=True)
    )
    weight = builder.access(name, builder.along([c, k]))
    scaled = builder.write("S", [c, k], "=", f"{weight}*{builder.access(gate, builder.along([c]))}")
    read = builder.access(image, builder.along([c, p]), dims=[1, 2])
    axes = builder.order_axes([Axis(k, out[1], (1,)), Axis(p, builder.sizes[p], (2, 3))], node.output)
    result = builder.write("T", [axis.name for axis in axes], "+=", f"{read}*{scaled}")
    return _with_bias(builder, node, out, axes, result)


def _windows(
    builder: KernelBuilder, shape: Shape, out: Shape, weights: Shape, steps: WindowSteps
) -> tuple[list[tuple[str, int]], list[Axis], list[tuple[str, int]]]:
    """Return the subscripts of the image, the axes of the result, and the subscripts of the window."""
    strides, dilations, pads = steps
    spatial, image, window = list[tuple[str, int]](), list[Axis](), list[tuple[str, int]]()
    for d, (y, r) in enumerate(spatial_names(len(shape) - 2)):
        builder.axis(y, out[d + 2])
        builder.axis(r, weights[d + 2])
        spatial.append((builder.subscript({y: strides[d], r: dilations[d]}, -pads[d][0]), shape[d + 2]))
        image.append(Axis(y, out[d + 2], (d + 2,)))
        window += builder.along([r])
    return spatial, image, window


def _with_bias(
    builder: KernelBuilder, node: Node, out: Shape, axes: Sequence[Axis], result: str
) -> KernelBuilder:
    if node.has(2):
        channel = builder.along(axis.name for axis in axes if axis.dims == (1,))
        result = f"({result}+{builder.access(node.inputs[2], channel)})"
    return builder.finish(out, axes, result)


def _steps(node: Node, rank: int) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Return the strides, dilations and padding of a node."""
    return (
        node.attributes.get("strides") or [1] * rank,
        node.attributes.get("dilations") or [1] * rank,
        node.attributes.get("pads") or [0] * (2 * rank),
    )


def build_transposed_convolution(network: Network, node: Node) -> KernelBuilder:
    """Build a transposed convolution, which scatters windows, and cuts off what padding takes away."""
    builder, shape, out = KernelBuilder(network), network.shape(node.inputs[0]), network.shape(node.output)
    weights = network.shape(node.inputs[1])
    rank, groups = len(shape) - 2, node.attributes.get("group", 1)
    if not 1 <= rank <= 3 or node.attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID", ""):
        raise node.refuse("this rank or automatic padding is not covered")
    if _covers_once(network, node):
        return _upsampling(network, node)
    strides, dilations, pads = _steps(node, rank)
    if node.attributes.get("output_shape"):
        raise node.refuse("output_shape is not covered")
    inner, outer = shape[1] // groups, weights[1]
    n, g, k, c = (builder.axis(*p) for p in zip("ngkc", (shape[0], groups, outer, inner), strict=True))
    read, window, target, cut = (list[tuple[str, int]]() for _ in range(4))
    image = list[Axis]()
    for d, (y, r) in enumerate(spatial_names(rank)):
        builder.axis(y, shape[d + 2])
        builder.axis(r, weights[d + 2])
        builder.axis(f"{y}_", out[d + 2])
        read += builder.along([y])
        window += builder.along([r])
        whole = (shape[d + 2] - 1) * strides[d] + dilations[d] * (weights[d + 2] - 1) + 1
        whole = max(whole, out[d + 2] + pads[d])
        target.append((builder.subscript({y: strides[d], r: dilations[d]}), whole))
        text = builder.subscript({f"{y}_": 1}, pads[d])
        cut.append((builder.partial(text, whole), whole))
        image.append(Axis(f"{y}_", out[d + 2], (d + 2,)))
    dims = [0, 1, 1, *range(2, 2 + rank)]
    ordered = builder.memory_order(dims, node.output)
    value = builder.access(node.inputs[0], [*builder.along([n, g, c]), *read], dims=dims)
    weight = builder.access(node.inputs[1], [*builder.along([g, c, k]), *window])
    parts = [*builder.along([n, g, k]), *target]
    kept = [parts[i] for i in ordered if parts[i][1] > 1]
    builder.statements.append(f"U[{','.join(text for text, _ in kept)}] += {value}*{weight}")
    builder.shapes["U"] = tuple(extent for _, extent in kept)
    axes = (Axis(n, shape[0], (0,)), Axis(g, groups, (1,)), Axis(k, outer, (1,)), *image)
    axes = builder.order_axes(axes, node.output)
    parts = [*builder.along([n, g, k]), *cut]
    taken = [parts[i] for i in ordered if parts[i][1] > 1]
    return _with_bias(builder, node, out, axes, _cut(builder, axes, [text for text, _ in taken]))


def _cut(builder: KernelBuilder, axes: Sequence[Axis], subscripts: Sequence[str]) -> str:
    """Read the part of a scattered tensor that the result has."""
    result = f"U[{','.join(subscripts)}]"
    if PART not in builder.sizes:
        return result
    element = ",".join(axis.name for axis in axes if axis.extent > 1)
    builder.statements.append(f"T[{element}] += {result}")
    return f"T[{element}]"


def _covers_once(network: Network, node: Node) -> bool:
    """Return whether the windows of a transposed convolution cover its result without overlap."""
    strides, dilations, pads = _steps(node, len(network.shape(node.output)) - 2)
    shape, out = network.shape(node.inputs[0]), network.shape(node.output)
    whole = tuple(n * s for n, s in zip(shape[2:], strides, strict=True))
    alike = tuple(strides) == network.shape(node.inputs[1])[2:] and set(dilations) == {1}
    return alike and not any(pads) and out[2:] == whole


def _upsampling(network: Network, node: Node) -> KernelBuilder:
    """Build a transposed convolution each of whose results is of one window: nothing is scattered."""
    builder = KernelBuilder(network)
    shape, weights = network.shape(node.inputs[0]), network.shape(node.inputs[1])
    groups = node.attributes.get("group", 1)
    inner, outer = shape[1] // groups, weights[1]
    n, g, k, c = (builder.axis(*p) for p in zip("ngkc", (shape[0], groups, outer, inner), strict=True))
    names = spatial_names(len(shape) - 2)
    image = [
        (builder.axis(y, e), builder.axis(r, f))
        for (y, r), e, f in zip(names, shape[2:], weights[2:], strict=True)
    ]
    dims = [0, 1, 1, *range(2, len(shape))]
    value = builder.access(node.inputs[0], builder.along([n, g, c, *(y for y, _ in image)]), dims=dims)
    weight = builder.access(node.inputs[1], builder.along([g, c, k, *(r for _, r in image)]))
    axes = [Axis(axis, builder.sizes[axis], (d,)) for axis, d in zip((n, g, k), (0, 1, 1), strict=True)]
    axes += [Axis(axis, builder.sizes[axis], (d + 2,)) for d, pair in enumerate(image) for axis in pair]
    arranged = builder.order_axes(axes, node.output)
    result = builder.write("T", [axis.name for axis in arranged], "+=", f"{value}*{weight}")
    return _with_bias(builder, node, network.shape(node.output), arranged, result)


def build_product(network: Network, node: Node) -> KernelBuilder:
    """Build MatMul: a product of matrices, or of stacks of them, which are broadcast."""
    builder, out = KernelBuilder(network), network.shape(node.output)
    left, right = network.shape(node.inputs[0]), network.shape(node.inputs[1])
    if len(left) < 2 or len(right) < 2:
        raise node.refuse("a product with a vector is not covered")
    k = builder.axis("k", left[-1])
    n = builder.axis("n", right[-1])
    if prod(right[:-2]) == 1:
        rows = Axis(builder.axis("m", prod(left[:-1])), prod(left[:-1]), tuple(range(len(out) - 1)))
        batch, lead_left, lead_right = list[Axis](), list[tuple[str, int]](), list[tuple[str, int]]()
    else:
        rows = Axis(builder.axis("m", left[-2]), left[-2], (len(out) - 2,))
        batch = [Axis(builder.axis(f"b{d}", e), e, (d,)) for d, e in enumerate(out[:-2])]
        lead_left = _stack(builder, batch, align_shape(left[:-2], len(batch)))
        lead_right = _stack(builder, batch, align_shape(right[:-2], len(batch)))
    m = rows.name
    a = builder.access(node.inputs[0], [*lead_left, *builder.along([m, k])])
    b = builder.access(node.inputs[1], [*lead_right, *builder.along([k, n])])
    axes = [*batch, rows, Axis(n, right[-1], (len(out) - 1,))]
    result = builder.write("T", [axis.name for axis in axes], "+=", f"{a}*{b}")
    return builder.finish(out, axes, result)


def _stack(builder: KernelBuilder, batch: Sequence[Axis], shape: Shape) -> list[tuple[str, int]]:
    return [
        (builder.subscript({axis.name: 1}) if extent > 1 else "0", extent)
        for axis, extent in zip(batch, shape, strict=True)
    ]


def build_gemm(network: Network, node: Node) -> KernelBuilder:
    """Build Gemm: alpha * A * B + beta * C, each of A and B transposed where that is asked for."""
    builder, out = KernelBuilder(network), network.shape(node.output)
    a, turned = network.shape(node.inputs[0]), node.attributes
    inner = a[0] if turned.get("transA") else a[1]
    m, n, k = (builder.axis(*p) for p in zip("mnk", (*out, inner), strict=True))
    value = builder.access(node.inputs[0], builder.along([k, m] if turned.get("transA") else [m, k]))
    weight = builder.access(node.inputs[1], builder.along([n, k] if turned.get("transB") else [k, n]))
    result = builder.write("T", [m, n], "+=", f"{value}*{weight}")
    alpha, beta = node.attributes.get("alpha", 1.0), node.attributes.get("beta", 1.0)
    result = result if alpha == 1 else f"({number(alpha)}*{result})"
    builder.finish(out, (Axis(m, out[0], (0,)), Axis(n, out[1], (1,))), result)
    if node.has(2) and beta:
        bias = builder.broadcast(node.inputs[2])
        builder.result = f"({result}+{bias if beta == 1 else f'{number(beta)}*{bias}'})"
    return builder


def letters_of(node: Node, ranks: list[int]) -> tuple[list[str], str]:
    """Return the letters of the operands and of the result; an ellipsis has letters of its own.

    Args:
        node: with the attribute `equation`.
        ranks: of the operands.
    """
    left, arrow, right = node.attributes["equation"].replace(" ", "").partition("->")
    terms = left.split(",")
    free = [each for each in string.ascii_letters if each not in left + right]
    most = max(
        (rank - len(term) + 3 for term, rank in zip(terms, ranks, strict=True) if "." in term), default=0
    )
    named = [
        term.replace("...", "".join(free[most - (rank - len(term) + 3) : most]))
        for term, rank in zip(terms, ranks, strict=True)
    ]
    if not arrow:
        every = "".join(terms).replace(".", "")
        right = "..." * ("..." in left) + "".join(
            sorted(each for each in set(every) if every.count(each) == 1)
        )
    return named, right.replace("...", "".join(free[:most]))


def build_einsum(network: Network, node: Node) -> KernelBuilder:
    """Build Einsum."""
    builder, shapes = KernelBuilder(network), [network.shape(name) for name in node.inputs]
    terms, result = letters_of(node, [len(shape) for shape in shapes])
    extents: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(set(term)) < len(term):
            raise node.refuse("a letter that an operand has twice is not covered")
        for letter, extent in zip(term, shape, strict=True):
            extents[letter] = max(extent, extents.get(letter, 1))
    # An axis is not a name of a tensor: those begin with other letters.
    axes = {letter: builder.axis(f"e{letter}", extent) for letter, extent in extents.items()}
    factors = [
        builder.access(
            name,
            [
                (builder.subscript({axes[letter]: 1}) if extent > 1 else "0", extent)
                for letter, extent in zip(term, shape, strict=True)
            ],
        )
        for name, term, shape in zip(node.inputs, terms, shapes, strict=True)
    ]
    found = builder.write("T", [axes[letter] for letter in result], "+=", "*".join(factors))
    kept = (Axis(axes[letter], extents[letter], (d,)) for d, letter in enumerate(result))
    return builder.finish(network.shape(node.output), kept, found)
