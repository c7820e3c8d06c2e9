"""Translation rules of operators that compute: casts, products, normalizations, quantization."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from planish.network.ir import VIEW, Node, TensorType
from planish.network.onnx.translator import FLOAT, Translator
from planish.network.python_kernels.recurrent import divide_recurrence
from planish.network.python_kernels.selection import INDEXED_POOL


def translate_cast(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Cast between types as they are stored; floats to truth values are a comparison."""
    source = node.inputs[0]
    truth = node.output in t.truths and source not in t.truths
    if not truth and t.types[source].dtype == t.types[node.output].dtype:
        yield Node(VIEW, node.name, (source,), node.output)
    elif truth and t.is_float(source):
        yield Node("Truth", node.name, (source,), node.output)
    else:
        kinds = [t.types[name].dtype for name in (source, node.output)]
        kind = next(kind for kind in kinds if kind != FLOAT)
        yield Node(f"Cast {kind}", node.name, (source,), node.output, {"truth": truth})


def translate_clip(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Keep Clip of floats; one of integers gets both limits."""
    kind = t.types[node.output].dtype
    if kind == FLOAT:
        yield node
        return
    limits = np.iinfo(kind)
    names = [node.inputs[0]]
    for index, limit in ((1, limits.min), (2, limits.max)):
        made = f"{node.output} limit {index}"
        names.append(node.inputs[index] if node.has(index) else t.constant(made, np.array(limit, kind)))
    yield Node(f"Clip {kind}", node.name, tuple(names), node.output)


def translate_where(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Keep Where, with the type of its operands in its name."""
    kind = t.types[node.output].dtype
    yield node if kind == FLOAT else Node(f"Where {kind}", node.name, node.inputs, node.output)


def translate_product(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Make matrices of vectors."""
    a, b = node.inputs
    left, right = t.shape(a), t.shape(b)
    if not t.is_float(a, b):
        raise node.refuse("products of whole numbers are not covered")
    if len(left) == 1:
        made = t.step(node, VIEW, (a,), (1, *left), "left")
        yield made
        a = made.output
    if len(right) == 1:
        made = t.step(node, VIEW, (b,), (*right, 1), "right")
        yield made
        b = made.output
    if len(left) > 1 and len(right) > 1:
        yield node
        return
    lead = np.broadcast_shapes(left[:-2], right[:-2])
    shape = (*lead, t.shape(a)[-2], t.shape(b)[-1])
    made = t.step(node, "MatMul", (a, b), shape, "product")
    yield made
    yield Node(VIEW, node.name, (made.output,), node.output)


def translate_logarithm(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide ReduceLogSum and ReduceLogSumExp into parts."""
    shape, out = t.shape(node.inputs[0]), t.shape(node.output)
    inputs = list(node.inputs)
    if node.operator == "ReduceLogSum":
        total = t.step(node, "ReduceSum", inputs, out, "sum", **node.attributes)
        yield from (total, t.step(node, "Log", (total.output,), out))
        return
    rank = len(shape)
    axes = t.numbers(node, 1) or node.attributes.get("axes") or range(rank)
    reduced = {d % rank for d in axes}
    kept = tuple(1 if d in reduced else n for d, n in enumerate(shape))
    most = t.step(node, "ReduceMax", inputs, kept, "most", **{**node.attributes, "keepdims": 1})
    yield most
    apart = t.step(node, "Sub", (inputs[0], most.output), shape, "apart")
    power = t.step(node, "Exp", (apart.output,), shape, "power")
    total = t.step(node, "ReduceSum", (power.output, *inputs[1:]), out, "sum", **node.attributes)
    log = t.step(node, "Log", (total.output,), out, "log")
    viewed = t.step(node, VIEW, (most.output,), out, "view")
    yield from (apart, power, total, log, viewed, t.step(node, "Add", (log.output, viewed.output), out))


def translate_batch_normalization(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Write BatchNormalization of a trained network as a scale and a shift: both join other operators."""
    constants = [t.constants.get(name) for name in node.inputs[1:5]]
    if any(each is None for each in constants) or node.attributes.get("training_mode"):
        raise node.refuse("only constant statistics are covered")
    scale, bias, mean, variance = (np.asarray(each, np.float64) for each in constants)
    factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    shape = t.shape(node.output)
    wide = (-1, *(1,) * (len(shape) - 2))
    by, more = (
        t.constant(f"{node.output} {what}", value.reshape(wide).astype(np.float32))
        for what, value in (("factor", factor), ("shift", bias - mean * factor))
    )
    scaled = t.step(node, "Mul", (node.inputs[0], by), shape, "scaled")
    yield from (scaled, t.step(node, "Add", (scaled.output, more), shape))


def translate_group_normalization(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide GroupNormalization into an InstanceNormalization of groups, a scale and a bias."""
    shape, groups = t.shape(node.inputs[0]), node.attributes["num_groups"]
    n, channels, rest = shape[0], shape[1], prod(shape[2:])
    eps = node.attributes.get("epsilon", 1e-5)
    first = t.step(node, VIEW, node.inputs[:1], (n, groups, channels // groups * rest), "groups")
    ones = t.constant(f"{node.output} ones", np.ones(groups, np.float32))
    zeros = t.constant(f"{node.output} zeros", np.zeros(groups, np.float32))
    normal = t.step(
        node,
        "InstanceNormalization",
        (first.output, ones, zeros),
        t.shape(first.output),
        "normal",
        epsilon=eps,
    )
    back = t.step(node, VIEW, (normal.output,), shape, "back")
    yield from (first, normal, back)
    wide, names = (channels, *(1,) * (len(shape) - 2)), list[str]()
    for index, what in ((1, "scale"), (2, "bias")):
        name = node.inputs[index]
        array = t.constants.get(name)
        if array is not None:
            array = np.repeat(array, channels // array.size)
            names.append(t.constant(f"{node.output} {what}", array.reshape(wide)))
        else:
            viewed = t.step(node, VIEW, (name,), wide, what)
            yield viewed
            names.append(viewed.output)
    scaled = t.step(node, "Mul", (back.output, names[0]), shape, "scaled")
    yield from (scaled, t.step(node, "Add", (scaled.output, names[1]), shape))


def translate_rms_normalization(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide RMSNormalization into a mean of squares, a quotient and a scale."""
    shape = t.shape(node.inputs[0])
    first = node.attributes.get("axis", -1) % len(shape)
    kept = tuple(n if d < first else 1 for d, n in enumerate(shape))
    eps = t.constant(f"{node.output} epsilon", np.array(node.attributes.get("epsilon", 1e-5), np.float32))
    square = t.step(node, "Mul", node.inputs[:1] * 2, shape, "square")
    mean = t.step(node, "ReduceMean", (square.output,), kept, "mean", axes=list(range(first, len(shape))))
    moved = t.step(node, "Add", (mean.output, eps), kept, "moved")
    root = t.step(node, "Sqrt", (moved.output,), kept, "root")
    normal = t.step(node, "Div", (node.inputs[0], root.output), shape, "normal")
    yield from (
        square,
        mean,
        moved,
        root,
        normal,
        t.step(node, "Mul", (normal.output, node.inputs[1]), shape),
    )


def translate_layer_normalization(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Compute the mean and the inverse of the deviation too, where they are asked for."""
    yield node
    shape = t.shape(node.inputs[0])
    first = node.attributes.get("axis", -1) % len(shape)
    kept = tuple(n if d < first else 1 for d, n in enumerate(shape))
    if not any(outputs[1:]):
        return
    mean, inverse = [*outputs[1:], "", ""][:2]
    mean, inverse = mean or f"{node.output} mean", inverse or f"{node.output} inverse"
    t.types |= {mean: TensorType(kept), inverse: TensorType(kept)}
    axes = {"axes": list(range(first, len(shape)))}
    yield Node("ReduceMean", node.name, node.inputs[:1], mean, axes)
    apart = t.step(node, "Sub", (node.inputs[0], mean), shape, "apart")
    square = t.step(node, "Mul", (apart.output,) * 2, shape, "square")
    eps = t.constant(f"{node.output} epsilon", np.array(node.attributes.get("epsilon", 1e-5), np.float32))
    variance = t.step(node, "ReduceMean", (square.output,), kept, "variance", **axes)
    moved = t.step(node, "Add", (variance.output, eps), kept, "moved")
    root = t.step(node, "Sqrt", (moved.output,), kept, "root")
    yield from (apart, square, variance, moved, root, Node("Reciprocal", node.name, (root.output,), inverse))


def _scale(t: Translator, node: Node, index: int, what: str, made: list[Node]) -> str:
    """Return a number for each element of an axis, as a float that is broadcast.

    Args:
        t: of the network.
        node: with the numbers as an input.
        index: of it; one that is computed is of one number.
        what: its name.
        made: nodes that compute it are added.
    """
    name, rank = node.inputs[index], len(t.shape(node.inputs[0]))
    found, result = t.constants.get(name), f"{node.output} {what}"
    if node.attributes.get("block_size") or (found is None and t.types[name].size > 1):
        raise node.refuse(f"input {index} is computed, or of blocks, which is not covered")
    if found is None and t.is_float(name):
        return name
    if found is None:
        t.types[result] = TensorType(t.shape(name))
        made.append(Node(f"Cast {t.types[name].dtype}", node.name, (name,), result))
        return result
    wide = [1] * rank
    if found.size > 1:
        wide[node.attributes.get("axis", 1)] = found.size
    array = np.asarray(found, np.float32)
    return t.constant(result, array.reshape(wide) if found.size > 1 else array.reshape(()))


def translate_dequantize(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide DequantizeLinear into a cast, a difference and a product."""
    shape, last = t.shape(node.output), f"{node.output} number"
    t.types[last] = TensorType(shape)
    yield Node(f"Cast {t.types[node.inputs[0]].dtype}", node.name, node.inputs[:1], last)
    made = list[Node]()
    if node.has(2):
        moved = t.step(node, "Sub", (last, _scale(t, node, 2, "zero", made)), shape, "moved")
        yield from (*made, moved)
        last = moved.output
    made.clear()
    product = t.step(node, "Mul", (last, _scale(t, node, 1, "scale", made)), shape)
    yield from (*made, product)


def translate_quantize(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide QuantizeLinear into a quotient, its rounding, and a cast of what is within the type."""
    shape, kind = t.shape(node.output), t.types[node.output].dtype
    made = list[Node]()
    share = t.step(node, "Div", (node.inputs[0], _scale(t, node, 1, "scale", made)), shape, "share")
    whole = t.step(node, "Round", (share.output,), shape, "whole")
    yield from (*made, share, whole)
    last = whole.output
    if node.has(2):
        made.clear()
        moved = t.step(node, "Add", (last, _scale(t, node, 2, "zero", made)), shape, "moved")
        yield from (*made, moved)
        last = moved.output
    limits = np.iinfo(kind)
    names = [
        t.constant(f"{node.output} limit {n}", np.array(limit, np.float32))
        for n, limit in enumerate((limits.min, limits.max))
    ]
    clipped = t.step(node, "Clip", (last, *names), shape, "clipped")
    yield from (clipped, Node(f"Cast {kind}", node.name, (clipped.output,), node.output))


def translate_lp_normalization(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide LpNormalization into a norm and a quotient; what has the norm 0 stays 0."""
    shape = t.shape(node.output)
    d = node.attributes.get("axis", -1) % len(shape)
    kept = tuple(1 if i == d else n for i, n in enumerate(shape))
    operator = "ReduceL1" if node.attributes.get("p", 2) == 1 else "ReduceL2"
    norm = t.step(node, operator, node.inputs, kept, "norm", axes=[d])
    least = t.constant(f"{node.output} least", np.array(1e-30, np.float32))
    above = t.step(node, "Max", (norm.output, least), kept, "above")
    yield from (norm, above, t.step(node, "Div", (node.inputs[0], above.output), shape))


def translate_skip_normalization(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Divide (Skip)LayerNormalization of ONNX Runtime into an addition and a normalization."""
    simple = "Simplified" in node.operator
    shape, added = t.shape(node.inputs[0]), list(node.inputs[:2])
    bias = 3 if simple else 4
    if node.has(bias):
        added.append(node.inputs[bias])
    total = outputs[3] if len(outputs) > 3 and outputs[3] else f"{node.output} sum"
    t.types[total] = TensorType(shape)
    yield Node("Sum", node.name, tuple(added), total)
    attributes = {"axis": -1, "epsilon": node.attributes.get("epsilon", 1e-12 if not simple else 1e-5)}
    inputs = (total, node.inputs[2], *((node.inputs[3],) if not simple and node.has(3) else ()))
    made = Node("LayerNormalization", node.name, inputs, node.output, attributes)
    yield from translate_rms_normalization(t, made, ()) if simple else (made,)


def translate_mean(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide Mean into a sum and a product."""
    shape = t.shape(node.output)
    total = t.step(node, "Sum", node.inputs, shape, "sum")
    share = t.constant(f"{node.output} share", np.array(1 / len(node.inputs), np.float32))
    yield from (total, t.step(node, "Mul", (total.output, share), shape))


def translate_pool(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Keep MaxPool; one with indices is a Python kernel."""
    if len(outputs) > 1 and outputs[1]:
        t.types.setdefault(outputs[1], TensorType(t.shape(node.output), "int64"))
        yield Node(INDEXED_POOL, node.name, node.inputs, node.output, node.attributes, (outputs[1],))
    elif (kind := t.types[node.inputs[0]].dtype) in ("int8", "uint8"):
        names = f"{node.output} floats", f"{node.output} maximum"
        t.types |= {names[0]: TensorType(t.shape(node.inputs[0])), names[1]: TensorType(t.shape(node.output))}
        yield Node(f"Cast {kind}", node.name, node.inputs[:1], names[0])
        yield Node(node.operator, node.name, names[:1], names[1], node.attributes)
        yield Node(f"Cast {kind}", node.name, names[1:], node.output)
    else:
        yield from t.typed(node)


def translate_gelu(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Translate the Gelu operators of ONNX Runtime, of which two add a bias."""
    x, shape = node.inputs[0], t.shape(node.output)
    if node.has(1):
        added = t.step(node, "Add", node.inputs[:2], shape, "biased")
        yield added
        x = added.output
    attributes = {**node.attributes, **({"approximate": "tanh"} if node.operator == "FastGelu" else {})}
    yield Node("Gelu", node.name, (x,), node.output, attributes)


def translate_top_k(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Compute both results of TopK, of which one may be left out."""
    value = t.types[node.inputs[0]]
    t.numbers(node, 1)
    names = [each or f"{next(filter(None, outputs))} unused" for each in [*outputs, ""][:2]]
    shape = t.shape(next(filter(None, outputs)))
    t.types |= {names[0]: TensorType(shape, value.dtype), names[1]: TensorType(shape, "int64")}
    yield Node("TopK", node.name, node.inputs[:1], names[0], node.attributes, (names[1],))


def translate_hardmax(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide Hardmax into ArgMax and OneHot."""
    shape = t.shape(node.output)
    d = node.attributes.get("axis", -1) % len(shape)
    found = f"{node.output} found"
    t.types[found] = TensorType(shape[:d] + shape[d + 1 :], "int64")
    yield Node("ArgMax", node.name, node.inputs, found, {"axis": d, "keepdims": 0})
    values = t.constant(f"{node.output} values", np.array([0, 1], np.float32))
    depth = t.constant(f"{node.output} depth", np.array(shape[d], np.int64))
    yield Node("OneHot", node.name, (found, depth, values), node.output, {"axis": d})


def translate_transposed_convolution(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Write the padding of a transposed convolution that is given by its result."""
    shape, weights, out = t.shape(node.inputs[0]), t.shape(node.inputs[1]), t.shape(node.output)
    rank, attributes = len(shape) - 2, dict(node.attributes)
    auto = attributes.pop("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER") or attributes.pop("output_shape", None):
        strides = attributes.get("strides") or [1] * rank
        dilations = attributes.get("dilations") or [1] * rank
        more = attributes.get("output_padding") or [0] * rank
        first, last = list[int](), list[int]()
        for d in range(rank):
            whole = (shape[d + 2] - 1) * strides[d] + more[d] + dilations[d] * (weights[d + 2] - 1) + 1
            total = whole - out[d + 2]
            small = total // 2
            first.append(small if auto == "SAME_UPPER" else total - small)
            last.append(total - first[-1])
        attributes["pads"] = first + last
    yield Node(node.operator, node.name, node.inputs, node.output, attributes)


def translate_local_response(t: Translator, node: Node, _outputs: Sequence[str]) -> Iterator[Node]:
    """Divide LRN: the sums over neighboring channels are a product with a matrix of bands."""
    shape, attributes = t.shape(node.inputs[0]), node.attributes
    channels, size = shape[1], attributes["size"]
    apart = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    share = attributes.get("alpha", 1e-4) / size
    bands = np.where((apart >= -((size - 1) // 2)) & (apart <= size // 2), share, 0).astype(np.float32)
    flat = (shape[0], channels, prod(shape[2:]))
    square = t.step(node, "Mul", node.inputs * 2, shape, "square")
    viewed = t.step(node, VIEW, (square.output,), flat, "flat")
    total = t.step(node, "MatMul", (t.constant(f"{node.output} bands", bands), viewed.output), flat, "sums")
    bias = t.constant(f"{node.output} bias", np.array(attributes.get("bias", 1.0), np.float32))
    power = t.constant(f"{node.output} exponent", np.array(-attributes.get("beta", 0.75), np.float32))
    moved = t.step(node, "Add", (total.output, bias), flat, "moved")
    scale = t.step(node, "Pow", (moved.output, power), flat, "scale")
    back = t.step(node, VIEW, (scale.output,), shape, "back")
    yield from (square, viewed, total, moved)
    yield from t.typed(scale)
    yield from (back, t.step(node, "Mul", (node.inputs[0], back.output), shape))


def translate_recurrence(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Divide LSTM, GRU and RNN into a product over all steps, and the loop over them."""
    return divide_recurrence(node, outputs, t.types, t.constants)
