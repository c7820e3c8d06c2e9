"""Operators of ONNX that move elements, as drafts of kernels."""

from __future__ import annotations

from math import prod

import numpy as np

from planish.network.drafts import Axis, Draft, frame
from planish.network.model import Network, Node, Shape, Value
from planish.network.reductions import with_constant


def _names(rank: int) -> list[str]:
    return [f"d{d}" for d in range(rank)]


def transpose(network: Network, node: Node) -> Draft:
    """Draft Transpose; dimensions that stay neighbors become one axis."""
    draft, shape, out = Draft(network), network.shape(node.inputs[0]), network.shape(node.output)
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
        draft.axis(axis.name, axis.extent)
    read = [(axes[d].name, axes[d].extent) for d in sorted(axes)]
    return draft.finish(out, tuple(axes.values()), draft.access(node.inputs[0], read))


def concatenation(network: Network, node: Node) -> Draft:
    """Draft Concat."""
    draft, out = Draft(network), network.shape(node.output)
    d = node.attributes["axis"] % len(out)
    names = [n for n in node.inputs if network.values[n].size]
    order = network.order(node.output)
    outer, inner = order[: order.index(d)], order[order.index(d) + 1 :]
    before, behind = prod(out[e] for e in outer), prod(out[e] for e in inner)
    i, j = draft.axis("i", before), draft.axis("j", behind)
    parts, pieces = list[str](), list[str]()
    for index, name in enumerate(names):
        extent = network.shape(name)[d]
        part = draft.axis(f"c{index}", extent)
        # Each part keeps its axis, though it may have one element alone.
        read = [(a, n) for a, n in ((i, before), (part, extent), (j, behind)) if n > 1 or a == part]
        local = draft.operand(name, tuple(n for _, n in read))
        parts.append(part)
        pieces.append(f"{local}[{','.join(a for a, _ in read)}]")
    target = ",".join([*([i] if before > 1 else []), "+".join(parts), *([j] if behind > 1 else [])])
    draft.statements.append(f"T[{target}] = {' | '.join(pieces)}")
    draft.kept |= set(parts)
    axes = (
        Axis(i, before, outer),
        Axis("q", out[d], (d,)),
        Axis(j, behind, inner),
    )
    kept = tuple(axis for axis in axes if axis.extent > 1 or axis.name == "q")
    return draft.finish(out, kept, f"T[{','.join(axis.name for axis in kept)}]")


def take(network: Network, node: Node) -> Draft:
    """Draft a part of a tensor, with a start and a step in each dimension."""
    draft, shape, out = Draft(network), network.shape(node.inputs[0]), network.shape(node.output)
    starts, steps = node.attributes["starts"], node.attributes["steps"]
    # As one dimension, up to the last element that is read: a dimension is read whole where an axis is all of
    # its subscript.
    terms, offset, last = dict[str, int](), 0, 0
    order = network.order(node.inputs[0])
    for d, name in enumerate(_names(len(out))):
        stride = prod(shape[e] for e in order[order.index(d) + 1 :])
        terms[draft.axis(name, out[d])] = stride * steps[d]
        offset += stride * starts[d]
        last += stride * (starts[d] + steps[d] * (out[d] - 1))
    local = draft.operand(node.inputs[0], (last + 1,))
    result = f"{local}[{draft.linear(terms, offset)}]"
    return draft.finish(out, draft.arranged(frame(out, _names(len(out))), node.output), result)


def gather(network: Network, node: Node) -> Draft:
    """Draft Gather along one dimension, by constant indices or by an input of whole numbers."""
    shape, indices = network.shape(node.inputs[0]), network.shape(node.inputs[1])
    d, name = node.attributes.get("axis", 0) % len(shape), network.root(node.inputs[1])
    if name in network.constants:
        fixed = network.constants[name].astype(np.int64)
        name = f"{node.output} indices"
        network = with_constant(network, name, np.where(fixed < 0, fixed + shape[d], fixed))
        network = _of_type(network, name, "int64")
    elif network.values[name].dtype not in ("int32", "int64"):
        raise node.refuse("indices that are computed are not covered")
    draft, out = Draft(network), network.shape(node.output)
    before, behind, count = prod(shape[:d]), prod(shape[d + 1 :]), prod(indices)
    i, q, j = (draft.axis(*pair) for pair in (("i", before), ("q", count), ("j", behind)))
    by = draft.access(name, [(draft.linear({q: 1}), count)])
    table = [(a, n) for a, n in ((i, before), ("", shape[d]), (j, behind)) if n > 1 or not a]
    local = draft.operand(node.inputs[0], tuple(n for _, n in table))
    result = f"{local}[{','.join(a or by for a, _ in table)}]"
    rank = len(indices)
    dims = (tuple(range(d)), tuple(range(d, d + rank)), tuple(range(d + rank, len(out))))
    axes = [Axis(a, n, group) for a, n, group in zip((i, q, j), (before, count, behind), dims, strict=True)]
    return draft.finish(out, tuple(axis for axis in axes if axis.extent > 1), result)


def _of_type(network: Network, name: str, dtype: str) -> Network:
    from dataclasses import replace

    values = {**network.values, name: Value(network.shape(name), dtype)}
    return replace(network, values=values)


def padding(network: Network, node: Node) -> Draft:
    """Draft Pad by a constant."""
    draft, shape, out = Draft(network), network.shape(node.inputs[0]), network.shape(node.output)
    pads, axes = network.whole_numbers(node, 1) or (), network.whole_numbers(node, 3)
    before = [0] * len(shape)
    for index, d in enumerate(axes if axes is not None else range(len(shape))):
        before[d] = pads[index]
    filling = network.constant(node, 2)
    value = 0.0 if filling is None else float(filling.reshape(()))
    names, axes_of = _names(len(out)), frame(out, _names(len(out)))
    read, behind = list[tuple[str, int]](), False
    for d, name in enumerate(names):
        draft.axis(name, out[d])
        text = draft.linear({name: 1}, -before[d])
        if text == name and out[d] != shape[d]:
            # A dimension is read whole where an axis is all of its subscript: so there is another axis.
            behind, text = True, f"{name}+z"
        read.append((text, shape[d]))
    result = draft.access(node.inputs[0], read, value)
    if behind:
        draft.axis("z", 1)
        draft.statements.append(f"T[{','.join(axis.name for axis in axes_of)}] max= {result}")
        result = f"T[{','.join(axis.name for axis in axes_of)}]"
    return draft.finish(out, axes_of, result)


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


def resize(network: Network, node: Node) -> Draft:
    """Draft Resize that repeats elements."""
    draft, shape, out = Draft(network), network.shape(node.inputs[0]), network.shape(node.output)
    factors = [m // n for n, m in zip(shape, out, strict=True)]
    axes, read = list[Axis](), list[tuple[str, int]]()
    for d, (n, f) in enumerate(zip(shape, factors, strict=True)):
        name = draft.axis(f"d{d}", n)
        read.append((draft.linear({name: 1}), n))
        axes += [Axis(name, n, (d,)), Axis(draft.axis(f"f{d}", f), f, (d,))]
    kept = draft.arranged([axis for axis in axes if axis.extent > 1], node.output)
    return draft.finish(out, kept, draft.access(node.inputs[0], read, dims=range(len(shape))))
