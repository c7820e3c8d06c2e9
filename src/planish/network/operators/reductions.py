"""Pooling, reductions, softmax and normalizations of ONNX, as drafts of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from planish.network.ir import Network, Node, Shape
from planish.network.operators.builder import Axis, KernelBuilder, number
from planish.network.operators.contractions import spatial_names, window_steps


def build_pooling(network: Network, node: Node) -> KernelBuilder:
    """Build MaxPool and AveragePool."""
    builder, shape, out = KernelBuilder(network), network.shape(node.inputs[0]), network.shape(node.output)
    kernel = tuple(node.attributes["kernel_shape"])
    rank = len(kernel)
    if not 1 <= rank <= 3:
        raise node.refuse(f"pooling over {rank} dimensions is not covered")
    strides, dilations, pads = window_steps(node, shape[2:], kernel)
    last = not network.channels_last.isdisjoint((node.inputs[0], node.output))
    axes = [
        Axis(builder.axis(name, extent), extent, dims)
        for name, dims in ([("n", (0,)), ("c", (1,))] if last else [("c", (0, 1))])
        for extent in (prod(shape[d] for d in dims),)
    ]
    read = builder.along(axis.name for axis in axes)
    leaves = False
    for d, (y, r) in enumerate(spatial_names(rank)):
        builder.axis(y, out[d + 2])
        builder.axis(r, kernel[d])
        read.append((builder.subscript({y: strides[d], r: dilations[d]}, -pads[d][0]), shape[d + 2]))
        axes.append(Axis(y, out[d + 2], (d + 2,)))
        end = (out[d + 2] - 1) * strides[d] + dilations[d] * (kernel[d] - 1) - pads[d][0]
        leaves |= pads[d][0] > 0 or end >= shape[d + 2]
    greatest = node.operator == "MaxPool"
    dims = [axis.dims[0] for axis in axes]
    value = builder.access(node.inputs[0], read, (-np.inf if greatest else 0.0) if leaves else None, dims)
    axes = builder.order_axes(axes, node.output)
    result = builder.write("T", [axis.name for axis in axes], "max=" if greatest else "+=", value)
    builder.finish(out, axes, result)
    if not greatest:
        builder.result = (
            f"({result}*{_shares(builder, node, (shape[2:], out[2:], kernel, strides, dilations), pads)})"
        )
    return builder


def _shares(
    builder: KernelBuilder, node: Node, windows: tuple[Shape, ...], pads: Sequence[tuple[int, int]]
) -> str:
    """Return by what sums of windows are multiplied: one number, or a constant tensor of the image's axes."""
    counts, padded = list[Any](), bool(node.attributes.get("count_include_pad", 0))
    for d, (n, m, k, s, step) in enumerate(zip(*windows, strict=True)):
        first = np.arange(m)[:, None] * s + np.arange(k)[None, :] * step
        low, high = (0, n + sum(pads[d])) if padded else (pads[d][0], pads[d][0] + n)
        counts.append(((first >= low) & (first < high)).sum(1))
    table = np.ones(())
    for count in counts:
        table = table[..., None] * count
    if (table == table.flat[0]).all():
        return number(1 / float(table.flat[0]))
    name = f"{node.output} shares"
    builder.network = builder.network.with_constant(name, np.asarray(1 / table, np.float32))
    return builder.broadcast(name)


_REDUCTIONS: Mapping[str, tuple[str, str]] = {
    "ReduceSum": ("+=", "{0}"),
    "ReduceMean": ("+=", "{0}"),
    "ReduceMax": ("max=", "{0}"),
    "ReduceMin": ("min=", "{0}"),
    "ReduceProd": ("*=", "{0}"),
    "ReduceL1": ("+=", "abs({0})"),
    "ReduceL2": ("+=", "{0}*{0}"),
    "ReduceSumSquare": ("+=", "{0}*{0}"),
    "GlobalAveragePool": ("+=", "{0}"),
    "GlobalMaxPool": ("max=", "{0}"),
}


def build_reduction(network: Network, node: Node) -> KernelBuilder:
    """Build the reductions of ONNX, and global pooling."""
    shape, out = network.shape(node.inputs[0]), network.shape(node.output)
    rank = len(shape)
    given = node.attributes.get("axes")
    if node.has(1):
        given = network.whole_numbers(node, 1)
    if node.operator.startswith("Global"):
        given = range(2, rank)
    elif not given and node.attributes.get("noop_with_empty_axes"):
        given = ()
    elif not given:
        given = range(rank)
    reduced = {d % rank for d in given}
    builder, axes, read, dims = KernelBuilder(network), list[Axis](), list[tuple[str, int]](), list[int]()
    keeps = len(out) == rank
    kept = [d for d in range(rank) if keeps or d not in reduced]
    for group in _runs(shape, reduced, apart=node.inputs[0] in network.channels_last):
        extent = prod(shape[d] for d in group)
        name = builder.axis(f"{'r' if group[0] in reduced else 'd'}{group[0]}", extent)
        read += builder.along([name])
        dims.append(group[0])
        if group[0] not in reduced:
            axes.append(Axis(name, extent, tuple(kept.index(d) for d in group)))
    update, form = _REDUCTIONS[node.operator]
    value = form.format(builder.access(node.inputs[0], read, dims=dims))
    axes = builder.order_axes(axes, node.output)
    result = builder.write("T", [axis.name for axis in axes], update, value) if reduced else value
    if node.operator in ("ReduceMean", "GlobalAveragePool"):
        result = f"({result}*{number(1 / prod(shape[d] for d in reduced))})"
    elif node.operator == "ReduceL2":
        result = f"sqrt({result})"
    return builder.finish(out, axes, result)


def _runs(shape: Shape, reduced: set[int], *, apart: bool) -> list[list[int]]:
    """Join neighboring dimensions that are all reduced, or all kept; those of 1 are left out.

    Where channels are apart from the rest, the second dimension is joined to no other.
    """
    runs = list[list[int]]()
    for d in (d for d, extent in enumerate(shape) if extent > 1):
        near = not apart or (d > 2 and runs and runs[-1][-1] > 1)
        if runs and near and (runs[-1][-1] in reduced) == (d in reduced):
            runs[-1].append(d)
        else:
            runs.append([d])
    return runs


def _around(builder: KernelBuilder, shape: Shape, first: int, last: int) -> list[Axis]:
    """Return three axes: what is before the dimensions from first to last, these, and what is after."""
    parts = [range(first), range(first, last + 1), range(last + 1, len(shape))]
    extents = [prod(shape[d] for d in dims) for dims in parts]
    return [
        Axis(builder.axis(name, extent), extent, tuple(dims))
        for name, extent, dims in zip("ikj", extents, parts, strict=True)
    ]


def _read(builder: KernelBuilder, tensor: str, axes: Sequence[Axis]) -> str:
    return builder.access(tensor, builder.along(axis.name for axis in axes))


def build_softmax(network: Network, node: Node) -> KernelBuilder:
    """Build Softmax and LogSoftmax along one dimension."""
    builder, shape = KernelBuilder(network), network.shape(node.inputs[0])
    d = node.attributes.get("axis", -1) % len(shape)
    axes = _around(builder, shape, d, d)
    i, k, j = (axis.name for axis in axes)
    x = _read(builder, node.inputs[0], axes)
    most = builder.write("M", [i, j], "max=", x)
    if node.operator == "LogSoftmax":
        total = builder.write("S", [i, j], "+=", f"exp({x}-{most})")
        result = f"({x}-{most}-log({total}))"
    else:
        power = builder.write("E", [i, k, j], "=", f"exp({x}-{most})")
        total = builder.write("S", [i, j], "+=", power)
        # The same for a row, so that it is divided once.
        result = f"({power}*(1/{total}))"
    return builder.finish(shape, axes, result)


def _normalize(builder: KernelBuilder, x: str, outer: Sequence[str], inner: Sequence[str], eps: float) -> str:
    """Write (x - mean) / sqrt(variance + eps); the variance is of the differences, as ONNX has it."""
    share = number(1 / prod(builder.sizes[a] for a in inner))
    total = builder.write("S", outer, "+=", x)
    rest = builder.write("D", [*outer, *inner], "=", f"{x}-{total}*{share}")
    squares = builder.write("V", outer, "+=", f"{rest}*{rest}")
    # The root and its reciprocal are the same for a row.
    return f"({rest}*(1/sqrt({squares}*{share}+{number(eps)})))"


def build_layer_normalization(network: Network, node: Node) -> KernelBuilder:
    """Build LayerNormalization, over the last dimensions."""
    builder, shape = KernelBuilder(network), network.shape(node.inputs[0])
    first = node.attributes.get("axis", -1) % len(shape)
    axes = _around(builder, shape, first, len(shape) - 1)[:2]
    x = _read(builder, node.inputs[0], axes)
    result = _normalize(builder, x, ["i"], ["k"], node.attributes.get("epsilon", 1e-5))
    builder.finish(shape, axes, "")
    scale = f"*{builder.broadcast(node.inputs[1])}" if node.has(1) else ""
    bias = f"+{builder.broadcast(node.inputs[2])}" if node.has(2) else ""
    builder.result = f"({result}{scale}{bias})"
    return builder


def build_instance_normalization(network: Network, node: Node) -> KernelBuilder:
    """Build InstanceNormalization: of each channel of each image by itself."""
    builder, shape = KernelBuilder(network), network.shape(node.inputs[0])
    groups = [(0,), (1,), tuple(range(2, len(shape)))]
    axes = [
        Axis(builder.axis(name, prod(shape[d] for d in dims)), prod(shape[d] for d in dims), dims)
        for name, dims in zip("nck", groups, strict=True)
    ]
    x = _read(builder, node.inputs[0], axes)
    result = _normalize(builder, x, ["n", "c"], ["k"], node.attributes.get("epsilon", 1e-5))
    scale, bias = (_read(builder, name, axes[1:2]) for name in node.inputs[1:3])
    return builder.finish(shape, axes, f"({result}*{scale}+{bias})")
