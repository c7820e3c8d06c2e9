"""Operators of ONNX that move elements, as drafts of kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from planish.network.ir import Network, Node, Shape
from planish.network.operators.builder import Axis, KernelBuilder, frame


def _names(rank: int) -> list[str]:
    return [f"d{d}" for d in range(rank)]


def build_transpose(network: Network, node: Node) -> KernelBuilder:
    """Build Transpose; dimensions that stay neighbors become one axis."""
    builder, shape, out = KernelBuilder(network), network.shape(node.inputs[0]), network.shape(node.output)
    order = node.attributes.get("perm") or list(range(len(shape)))[::-1]
    groups = list[list[int]]()
    for d in (d for d in order if shape[d] > 1):
        previous = groups[-1][-1] if groups else None
        if previous is not None and all(shape[e] == 1 for e in range(previous + 1, d)) and previous < d:
            groups[-1].append(d)
        else:
            groups.append([d])
    axes = {
        group[0]: Axis(f"d{group[0]}", prod(shape[d] for d in group), tuple(order.index(d) for d in group))
        for group in groups
    }
    for axis in axes.values():
        builder.axis(axis.name, axis.extent)
    read = [(axes[d].name, axes[d].extent) for d in sorted(axes)]
    return builder.finish(out, tuple(axes.values()), builder.access(node.inputs[0], read))


def build_concatenation(network: Network, node: Node) -> KernelBuilder:
    """Build Concat."""
    builder, out = KernelBuilder(network), network.shape(node.output)
    d = node.attributes["axis"] % len(out)
    names = [n for n in node.inputs if network.types[n].size]
    order = network.order(node.output)
    outer, inner = order[: order.index(d)], order[order.index(d) + 1 :]
    before, after = prod(out[e] for e in outer), prod(out[e] for e in inner)
    i, j = builder.axis("i", before), builder.axis("j", after)
    parts, pieces = list[str](), list[str]()
    for index, name in enumerate(names):
        extent = network.shape(name)[d]
        part = builder.axis(f"c{index}", extent)
        # Each part keeps its axis, though it may have one element alone.
        read = [(a, n) for a, n in ((i, before), (part, extent), (j, after)) if n > 1 or a == part]
        local = builder.operand(name, tuple(n for _, n in read))
        parts.append(part)
        pieces.append(f"{local}[{','.join(a for a, _ in read)}]")
    target = ",".join([*([i] if before > 1 else []), "+".join(parts), *([j] if after > 1 else [])])
    builder.statements.append(f"T[{target}] = {' | '.join(pieces)}")
    builder.kept.add("q")
    builder.finish(out, (Axis(i, before, outer), Axis("q", out[d], (d,)), Axis(j, after, inner)), "")
    builder.result = builder.element("T")
    return builder


def build_strided_slice(network: Network, node: Node) -> KernelBuilder:
    """Build a part of a tensor, with a start and a step in each dimension."""
    builder, shape, out = KernelBuilder(network), network.shape(node.inputs[0]), network.shape(node.output)
    starts, steps = node.attributes["starts"], node.attributes["steps"]
    # As one dimension, up to the last element that is read: a dimension is read whole where an axis is all of
    # its subscript.
    terms, offset, last = dict[str, int](), 0, 0
    order = network.order(node.inputs[0])
    for d, name in enumerate(_names(len(out))):
        stride = prod(shape[e] for e in order[order.index(d) + 1 :])
        terms[builder.axis(name, out[d])] = stride * steps[d]
        offset += stride * starts[d]
        last += stride * (starts[d] + steps[d] * (out[d] - 1))
    local = builder.operand(node.inputs[0], (last + 1,))
    result = f"{local}[{builder.subscript(terms, offset)}]"
    return builder.finish(out, builder.order_axes(frame(out, _names(len(out))), node.output), result)


def build_gather(network: Network, node: Node) -> KernelBuilder:
    """Build Gather along one dimension, by constant indices or by an input of whole numbers."""
    shape, indices = network.shape(node.inputs[0]), network.shape(node.inputs[1])
    d, name = node.attributes.get("axis", 0) % len(shape), network.root(node.inputs[1])
    if name in network.constants:
        fixed = network.constants[name].astype(np.int64)
        name = f"{node.output} indices"
        network = network.with_constant(name, np.where(fixed < 0, fixed + shape[d], fixed))
    elif network.types[name].dtype not in ("int32", "int64"):
        raise node.refuse("indices that are computed are not covered")
    builder, out = KernelBuilder(network), network.shape(node.output)
    before, after, count = prod(shape[:d]), prod(shape[d + 1 :]), prod(indices)
    i, q, j = (builder.axis(*pair) for pair in (("i", before), ("q", count), ("j", after)))
    by = builder.access(name, builder.along([q]))
    table = [(a, n) for a, n in ((i, before), ("", shape[d]), (j, after)) if n > 1 or not a]
    local = builder.operand(node.inputs[0], tuple(n for _, n in table))
    result = f"{local}[{','.join(a or by for a, _ in table)}]"
    rank = len(indices)
    dims = (tuple(range(d)), tuple(range(d, d + rank)), tuple(range(d + rank, len(out))))
    axes = [Axis(a, n, group) for a, n, group in zip((i, q, j), (before, count, after), dims, strict=True)]
    return builder.finish(out, axes, result)


def build_padding(network: Network, node: Node) -> KernelBuilder:
    """Build Pad by a constant."""
    builder, shape, out = KernelBuilder(network), network.shape(node.inputs[0]), network.shape(node.output)
    pads, axes = network.whole_numbers(node, 1) or (), network.whole_numbers(node, 3)
    before = [0] * len(shape)
    for index, d in enumerate(axes if axes is not None else range(len(shape))):
        before[d] = pads[index]
    filling = network.constant(node, 2)
    value = 0.0 if filling is None else float(filling.reshape(()))
    names, axes_of = _names(len(out)), frame(out, _names(len(out)))
    read, after = list[tuple[str, int]](), False
    for d, name in enumerate(names):
        builder.axis(name, out[d])
        text = builder.subscript({name: 1}, -before[d])
        if text == name and out[d] != shape[d]:
            # A dimension is read whole where an axis is all of its subscript: so there is another axis.
            after, text = True, f"{name}+z"
        read.append((text, shape[d]))
    result = builder.access(node.inputs[0], read, value)
    if after:
        builder.axis("z", 1)
        builder.statements.append(f"T[{','.join(axis.name for axis in axes_of)}] max= {result}")
        result = f"T[{','.join(axis.name for axis in axes_of)}]"
    return builder.finish(out, axes_of, result)


def repeats_elements(node: Node, shape: Shape, out: Shape) -> bool:
    """Return whether Resize or Upsample repeats each element, as often as the shapes say."""
    if node.attributes.get("mode", "nearest") != "nearest" or any(
        m % n for n, m in zip(shape, out, strict=True)
    ):
        return False
    where = node.attributes.get("coordinate_transformation_mode", "half_pixel")
    rounding = node.attributes.get("nearest_mode", "round_prefer_floor")
    return (
        node.operator == "Upsample"
        or (where == "asymmetric" and rounding == "floor")
        or (where in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round"))
    )


def build_resize(network: Network, node: Node) -> KernelBuilder:
    """Build Resize that repeats elements."""
    builder, shape, out = KernelBuilder(network), network.shape(node.inputs[0]), network.shape(node.output)
    factors = [m // n for n, m in zip(shape, out, strict=True)]
    axes, read = list[Axis](), list[tuple[str, int]]()
    for d, (n, f) in enumerate(zip(shape, factors, strict=True)):
        name = builder.axis(f"d{d}", n)
        read += builder.along([name])
        axes += [Axis(name, n, (d,)), Axis(builder.axis(f"f{d}", f), f, (d,))]
    axes = builder.order_axes(axes, node.output)
    return builder.finish(out, axes, builder.access(node.inputs[0], read, dims=range(len(shape))))
