"""Translation rules of operators that move elements, and of those that concern shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from planish.network.ir import STRIDED_SLICE, VIEW, Array, Node, Shape, TensorType
from planish.network.onnx.translator import Translator
from planish.network.operators.movement import repeats_elements
from planish.network.python_kernels.copying import COPY, WRAP, copy_tables, padded_table, strides_of
from planish.network.python_kernels.resizing import RESIZED, taps_of


def translate_view(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """View a tensor in the shape of the result, which moves nothing."""
    for index in range(1, len(node.inputs)):
        t.numbers(node, index)
    yield Node(VIEW, node.name, node.inputs[:1], node.output)


def translate_dropout(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Pass a tensor on; its mask is constant."""
    yield Node(VIEW, node.name, node.inputs[:1], node.output)
    if len(outputs) > 1 and outputs[1]:
        t.constant(outputs[1], np.ones(t.shape(node.output), np.float32))


def translate_found(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Keep an operator that finds elements; results that are left out are computed too."""
    names = [name or f"{node.output} unused {index}" for index, name in enumerate(outputs)]
    for name in names:
        t.types.setdefault(name, TensorType(t.shape(node.output), "int64"))
    yield Node(node.operator, node.name, node.inputs, names[0], node.attributes, tuple(names[1:]))


def translate_copy(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Keep an operator on floats, copy elements of other types by tables, and view what is repeated once."""
    if node.operator in ("Expand", "Tile"):
        t.numbers(node, 1)
        if prod(t.shape(node.inputs[0])) == prod(t.shape(node.output)):
            yield Node(VIEW, node.name, node.inputs[:1], node.output)
            return
    if t.is_float(node.inputs[0]) and node.operator != "Tile":
        # The shape that Expand takes is not an operand that is broadcast.
        yield Node(node.operator, node.name, node.inputs[:1], node.output, node.attributes)
    else:
        tables = copy_tables(node.operator, t.types, node)
        yield Node(COPY, node.name, node.inputs[:1], node.output, {"tables": tables})


def translate_transpose(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Transpose a tensor, or view it where dimensions of more than one element keep their order."""
    shape = t.shape(node.inputs[0])
    order = node.attributes.get("perm") or list(range(len(shape)))[::-1]
    long = [d for d in order if shape[d] > 1]
    if long == sorted(long):
        yield Node(VIEW, node.name, node.inputs, node.output)
    else:
        yield from translate_copy(t, node, outputs)


def translate_split(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Take each part of Split by itself."""
    rank = len(t.shape(node.inputs[0]))
    d, start = node.attributes.get("axis", 0) % rank, 0
    for output in outputs:
        starts = [0] * rank
        starts[d] = start
        start += t.shape(output)[d]
        taken = Node(
            STRIDED_SLICE, node.name, node.inputs[:1], output, {"starts": starts, "steps": [1] * rank}
        )
        yield from translate_copy(t, taken, outputs)


def translate_slice(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Read a strided slice; a step backwards is a copy by tables."""
    shape = t.shape(node.inputs[0])
    first, last = (t.numbers(node, index) or [] for index in (1, 2))
    axes, given = t.numbers(node, 3), t.numbers(node, 4)
    del last  # the shape of the result has what follows from it
    starts, steps = [0] * len(shape), [1] * len(shape)
    for i, start in enumerate(first):
        d, step = axes[i] if axes else i, given[i] if given else 1
        n = shape[d]
        starts[d] = min(max(start + n if start < 0 else start, 0), n if step > 0 else n - 1)
        steps[d] = step
    taken = Node(STRIDED_SLICE, node.name, node.inputs[:1], node.output, {"starts": starts, "steps": steps})
    if min(steps, default=1) > 0:
        yield from translate_copy(t, taken, outputs)
    else:
        yield Node(
            COPY, node.name, taken.inputs, node.output, {"tables": copy_tables(STRIDED_SLICE, t.types, taken)}
        )


def translate_pad(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Keep padding of floats by a constant, and copy by tables otherwise."""
    shape, mode = t.shape(node.inputs[0]), node.attributes.get("mode", "constant")
    pads, axes = t.numbers(node, 1) or [], t.numbers(node, 3)
    value = 0
    if node.has(2) and mode == "constant":
        if node.inputs[2] not in t.constants:
            raise node.refuse("a computed value is not covered")
        value = t.constants[node.inputs[2]].reshape(()).item()
    listed = [d % len(shape) for d in axes] if axes is not None else range(len(shape))
    if mode == "constant" and t.is_float(node.inputs[0]):
        yield node
        return
    tables = [np.arange(n) for n in shape]
    for i, d in enumerate(listed):
        tables[d] = padded_table(shape[d], pads[i], pads[i + len(listed)], mode)
    strides = strides_of(shape)
    offsets = [np.where(table < 0, -1, table * s) for table, s in zip(tables, strides, strict=True)]
    yield Node(COPY, node.name, node.inputs[:1], node.output, {"tables": offsets, "fill": value})


def translate_concatenation(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Concatenate tensors with elements; those of integers pair by pair."""
    names, d = [name for name in node.inputs if t.types[name].size], node.attributes["axis"]
    if len(names) < 2:
        yield Node(VIEW, node.name, tuple(names[:1] or node.inputs[:1]), node.output)
    elif t.is_float(*names):
        yield Node("Concat", node.name, tuple(names), node.output, node.attributes)
    else:
        last = names[0]
        for index, name in enumerate(names[1:], 1):
            shape = list(t.shape(last))
            shape[d] += t.shape(name)[d]
            suffix = "" if index == len(names) - 1 else f"part {index}"
            yield t.step(node, "Join", (last, name), tuple(shape), suffix, axis=d)
            last = f"{node.output} {suffix}" if suffix else node.output


def translate_gather(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Gather floats by constant indices, or by ones that count from the beginning; copy other types."""
    data, indices = node.inputs
    shape = t.shape(data)
    d = node.attributes.get("axis", 0) % len(shape)
    if not t.is_float(data):
        yield Node("GatherRows", node.name, node.inputs, node.output, node.attributes)
    elif indices in t.constants:
        yield node
    else:
        # Programs of `loops` look up by indices that count from the beginning.
        wrapped = f"{node.output} indices"
        t.types[wrapped] = t.types[indices]
        yield Node(WRAP, node.name, (indices,), wrapped, {"extent": shape[d]})
        yield Node("Gather", node.name, (data, wrapped), node.output, node.attributes)


def translate_resize(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Resize one dimension after the other, by tables of elements and of their shares."""
    shape, out, attributes = t.shape(node.inputs[0]), t.shape(node.output), dict(node.attributes)
    if t.is_float(node.inputs[0]) and repeats_elements(node, shape, out):
        yield node
        return
    rank = len(shape)
    axes = [d % rank for d in attributes.get("axes") or range(rank)]
    scales = {d: m / n for d, (n, m) in enumerate(zip(shape, out, strict=True))}
    given = read_floats(t, node, 2 if node.operator == "Resize" else 1)
    t.numbers(node, 3)
    scales |= dict(zip(axes, given, strict=False))
    if (
        node.operator == "Resize"
        and not given
        and attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch"
    ):
        raise node.refuse("a policy of the aspect ratio is not covered")
    if (
        attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        and attributes.get("mode") != "nearest"
    ):
        raise node.refuse("tf_crop_and_resize is covered for the nearest element alone")
    if node.operator == "Upsample":
        attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    region = read_floats(t, node, 1) if node.operator == "Resize" else []
    changed = [d for d in axes if out[d] != shape[d] or len(region) == 2 * len(axes)]
    last, current = node.inputs[0], list(shape)
    tables = list[Array]()
    for d in changed:
        i = axes.index(d)
        ends = (region[i], region[i + len(axes)]) if len(region) == 2 * len(axes) else (0.0, 1.0)
        table, shares = taps_of(shape[d], out[d], float(scales[d]), attributes, ends)
        tables.append(table)
        if not t.is_float(last) or table.shape[1] == 1:
            parts = [np.arange(n) * s for n, s in zip(current, strides_of(tuple(current)), strict=True)]
            parts[d] = table[:, 0] * strides_of(tuple(current))[d]
            operator, more = COPY, {"tables": parts}
        else:
            operator, more = RESIZED, {"axis": d, "table": table, "shares": shares}
        if not t.is_float(last) and table.shape[1] > 1:
            raise node.refuse("interpolation of whole numbers is not covered")
        current[d] = out[d]
        suffix = "" if d == changed[-1] else f"axis {d}"
        yield t.step(node, operator, (last,), tuple(current), suffix, **more)
        last = f"{node.output} {suffix}" if suffix else node.output
    if not changed:
        yield Node(VIEW, node.name, node.inputs[:1], node.output)


def read_floats(t: Translator, node: Node, index: int) -> list[float]:
    """Return the numbers of a constant input; none where it is left out."""
    if not node.has(index):
        return []
    found = t.constants.get(node.inputs[index])
    if found is None:
        raise node.refuse(f"input {index} is computed, which is not covered")
    return [float(n) for n in found.reshape(-1)]


def _view_and_transpose(t: Translator, node: Node, first: Shape, order: Sequence[int]) -> Iterator[Node]:
    """View a tensor in a shape, transpose it, and view it in that of the result."""
    viewed = t.step(node, VIEW, node.inputs[:1], first, "parts")
    yield viewed
    turned = t.step(
        node, "Transpose", (viewed.output,), tuple(first[d] for d in order), "turned", perm=list(order)
    )
    yield from translate_transpose(t, turned, ())
    yield Node(VIEW, node.name, (turned.output,), node.output)


def translate_depth_to_space(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide DepthToSpace into views and a transposition."""
    n, c, h, w = t.shape(node.inputs[0])
    b = node.attributes["blocksize"]
    if node.attributes.get("mode", "DCR") == "DCR":
        return _view_and_transpose(t, node, (n, b, b, c // b**2, h, w), (0, 3, 4, 1, 5, 2))
    return _view_and_transpose(t, node, (n, c // b**2, b, b, h, w), (0, 1, 4, 2, 5, 3))


def translate_space_to_depth(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide SpaceToDepth into views and a transposition."""
    n, c, h, w = t.shape(node.inputs[0])
    b = node.attributes["blocksize"]
    return _view_and_transpose(t, node, (n, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4))


def translate_shape(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Compute Shape, Size or EyeLike, which are constant."""
    shape = t.shape(node.inputs[0])
    if node.operator == "Shape":
        start, end = node.attributes.get("start", 0), node.attributes.get("end")
        t.constant(node.output, np.array(shape[start:end], np.int64))
    elif node.operator == "Size":
        t.constant(node.output, np.array(prod(shape), np.int64))
    else:
        value = t.types[node.output]
        t.constant(
            node.output,
            np.eye(value.shape[0], value.shape[1], node.attributes.get("k", 0)).astype(value.dtype),
        )
    yield from ()


def translate_constant_of_shape(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Compute ConstantOfShape, whose shape is known."""
    value = t.types[node.output]
    given = node.attributes.get("value")
    t.constant(node.output, np.full(value.shape, 0 if given is None else given.reshape(()), value.dtype))
    yield from ()
