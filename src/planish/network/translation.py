"""Translation of ONNX's nodes into those of a network.

Truth values and numbers of float64 are stored as float32. Operators over floats become programs of `loops`,
where these can compute them. All others, and those of whole numbers, become plain code: a node whose operator
also exists for floats then has the element type in its name, as in `Add int64`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from planish.network.copying import COPY, WRAP, copies, padded_table, strides_of
from planish.network.elementwise import ELEMENTWISE, POWERS
from planish.network.model import TAKE, VIEW, Array, Node, Shape, Value
from planish.network.movement import repeats_elements
from planish.network.plain_operators import plain_operator
from planish.network.pointwise import FLOATS, WHOLE
from planish.network.recurrent import GATES, divided
from planish.network.resizing import RESIZED, taps_of
from planish.network.selecting import INDEXED_POOL

FLOAT = "float32"
_AS_FLOATS = (FLOAT, "float64", "bool")
_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
_VARIADIC = ("Max", "Min", "Sum")


CONTRIBUTED = (
    "Gelu", "FastGelu", "QuickGelu", "BiasGelu", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
)  # fmt: skip
"""Operators of ONNX Runtime's own domain that are covered."""


def stored(dtype: str) -> str:
    """Return the type in which tensors of a type are stored."""
    return FLOAT if dtype in _AS_FLOATS else dtype


class Translator:
    """Translates nodes, and keeps the types of all tensors, and the values of the constant ones.

    Args:
        values: types by name, as they are stored.
        constants: values by name, likewise.
        truths: tensors of truth values.
    """

    def __init__(self, values: dict[str, Value], constants: dict[str, Array], truths: set[str]) -> None:
        self.values, self.constants, self.truths = values, constants, truths

    def translate(self, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
        """Translate a node of ONNX.

        Args:
            node: as ONNX has it.
            outputs: all of its outputs, in their order; empty for those that are left out.

        Raises:
            ProgramError: it is not covered.
        """
        rule = _RULES.get(node.operator)
        if (
            node.has(0)
            and not self.values[node.inputs[0]].size
            and rule not in (_concatenation, _shape, _filled)
        ):
            self._of_nothing(node)
        elif rule is not None:
            yield from rule(self, node, outputs)
        elif node.operator in GATES:
            yield from divided(node, outputs, self.values, self.constants)
        else:
            yield from self.typed(node)

    def _of_nothing(self, node: Node) -> None:
        """Make the result of an operator on no elements constant, where it is that of a reduction."""
        value = self.values[node.output]
        if node.operator not in _OF_NOTHING:
            raise node.refuse("an operand without elements is not covered")
        begin = _OF_NOTHING[node.operator]
        if value.dtype != FLOAT:
            limits = np.iinfo(value.dtype)
            begin = limits.min if begin == -np.inf else limits.max if begin == np.inf else int(begin)
        elif node.output in self.truths:
            begin = float(begin > 0)
        self.constant(node.output, np.full(value.shape, begin, value.dtype))

    def covers(self, operator: str) -> bool:
        """Return whether an operator of ONNX is translated, or is one of a network."""
        known = operator in _RULES or operator in GATES or operator in WHOLE or operator in ELEMENTWISE
        return known or plain_operator(operator) is not None

    def shape(self, name: str) -> Shape:
        """Return a tensor's shape."""
        return self.values[name].shape

    def is_float(self, *names: str) -> bool:
        """Return whether all tensors are stored as floats."""
        return all(self.values[name].dtype == FLOAT for name in names if name)

    def constant(self, name: str, array: Array) -> str:
        """Add a constant."""
        self.constants[name] = np.ascontiguousarray(array).reshape(array.shape)
        self.values[name] = Value(array.shape, array.dtype.name)
        return name

    def numbers(self, node: Node, index: int) -> list[int] | None:
        """Return the whole numbers of a constant input; None where it is left out.

        Raises:
            ProgramError: it is computed.
        """
        if not node.has(index):
            return None
        found = self.constants.get(node.inputs[index])
        if found is None:
            raise node.refuse(f"input {index} is computed, which is not covered")
        return [int(n) for n in np.atleast_1d(found)]

    def step(
        self,
        node: Node,
        operator: str,
        inputs: Sequence[str],
        shape: Shape,
        suffix: str = "",
        **attributes: Any,
    ) -> Node:
        """Make a node of a part of an operator.

        Args:
            node: of ONNX.
            operator: of the part.
            inputs: of the part.
            shape: of its result.
            suffix: of the name of its result; empty for that of the node.
            attributes: of the part.
        """
        name = f"{node.output} {suffix}" if suffix else node.output
        if suffix:
            self.values[name] = Value(shape, self.values[inputs[0]].dtype)
        return Node(operator, node.name, tuple(inputs), name, attributes)

    def typed(self, node: Node) -> Iterator[Node]:
        """Return an operator for the types of its operands."""
        if node.operator in _REDUCED or (node.operator == "Pow" and self.is_float(node.inputs[0])):
            # The axes are whole numbers, and an exponent may be.
            node = self._with_floats(node) if node.operator == "Pow" else node
            data = (node.inputs[0],)
        else:
            data = node.inputs
        if self.is_float(*data, node.output):
            if node.operator == "Pow" and not (self.is_float(node.inputs[1]) and self._known_power(node)):
                yield Node("Power", node.name, node.inputs, node.output)
            else:
                yield node
            return
        if node.operator in _VARIADIC and len(node.inputs) != 2:
            yield from self._chain(node)
            return
        kinds = [self.values[name].dtype for name in (*data, node.output) if name]
        kind = next(kind for kind in kinds if kind != FLOAT)
        known = node.operator in WHOLE or node.operator in FLOATS or node.operator in ("Cast", *_REDUCED)
        name = f"{node.operator} {kind}" if known else node.operator
        yield Node(name, node.name, node.inputs, node.output, node.attributes)

    def _with_floats(self, node: Node) -> Node:
        exponent = self.constants.get(node.inputs[1])
        if exponent is None or exponent.dtype == FLOAT:
            return node
        name = self.constant(f"{node.output} exponent", np.asarray(exponent, np.float32))
        return Node(node.operator, node.name, (node.inputs[0], name), node.output)

    def _known_power(self, node: Node) -> bool:
        found = self.constants.get(node.inputs[1])
        return found is not None and found.size == 1 and float(found.reshape(())) in POWERS

    def _chain(self, node: Node) -> Iterator[Node]:
        """Apply an operator to two operands after the other."""
        last = node.inputs[0]
        if len(node.inputs) == 1:
            yield Node(VIEW, node.name, node.inputs, node.output)
        for index, name in enumerate(node.inputs[1:], 1):
            end = index == len(node.inputs) - 1
            shape = np.broadcast_shapes(self.shape(last), self.shape(name))
            made = self.step(node, node.operator, (last, name), shape, "" if end else f"part {index}")
            yield from self.typed(made)
            last = made.output


Rule = Callable[[Translator, Node, Sequence[str]], Iterator[Node]]


def _view(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    for index in range(1, len(node.inputs)):
        t.numbers(node, index)
    yield Node(VIEW, node.name, node.inputs[:1], node.output)


def _dropout(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    yield Node(VIEW, node.name, node.inputs[:1], node.output)
    if len(outputs) > 1 and outputs[1]:
        t.constant(outputs[1], np.ones(t.shape(node.output), np.float32))


def _copy(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Keep an operator on floats, and copy elements of other types by tables."""
    del outputs
    if node.operator in ("Expand", "Tile"):
        t.numbers(node, 1)
    if t.is_float(node.inputs[0]) and node.operator != "Tile":
        # The shape that Expand takes is no operand that is broadcast.
        yield Node(node.operator, node.name, node.inputs[:1], node.output, node.attributes)
    else:
        tables = copies(node.operator, t.values, node)
        yield Node(COPY, node.name, node.inputs[:1], node.output, {"tables": tables})


def _transpose(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    shape = t.shape(node.inputs[0])
    order = node.attributes.get("perm") or list(range(len(shape)))[::-1]
    long = [d for d in order if shape[d] > 1]
    if long == sorted(long):
        yield Node(VIEW, node.name, node.inputs, node.output)
    else:
        yield from _copy(t, node, outputs)


def _split(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    rank = len(t.shape(node.inputs[0]))
    d, start = node.attributes.get("axis", 0) % rank, 0
    for output in outputs:
        starts = [0] * rank
        starts[d] = start
        start += t.shape(output)[d]
        taken = Node(TAKE, node.name, node.inputs[:1], output, {"starts": starts, "steps": [1] * rank})
        yield from _copy(t, taken, outputs)


def _slice(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
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
    taken = Node(TAKE, node.name, node.inputs[:1], node.output, {"starts": starts, "steps": steps})
    if min(steps, default=1) > 0:
        yield from _copy(t, taken, outputs)
    else:
        yield Node(COPY, node.name, taken.inputs, node.output, {"tables": copies(TAKE, t.values, taken)})


def _pad(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
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


def _concatenation(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    names, d = [name for name in node.inputs if t.values[name].size], node.attributes["axis"]
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


def _gather(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
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
        t.values[wrapped] = t.values[indices]
        yield Node(WRAP, node.name, (indices,), wrapped, {"extent": shape[d]})
        yield Node("Gather", node.name, (data, wrapped), node.output, node.attributes)


def _cast(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    source = node.inputs[0]
    truth = node.output in t.truths and source not in t.truths
    if not truth and t.values[source].dtype == t.values[node.output].dtype:
        yield Node(VIEW, node.name, (source,), node.output)
    elif truth and t.is_float(source):
        yield Node("Truth", node.name, (source,), node.output)
    else:
        kinds = [t.values[name].dtype for name in (source, node.output)]
        kind = next(kind for kind in kinds if kind != FLOAT)
        yield Node(f"Cast {kind}", node.name, (source,), node.output, {"truth": truth})


def _clip(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    kind = t.values[node.output].dtype
    if kind == FLOAT:
        yield node
        return
    limits = np.iinfo(kind)
    names = [node.inputs[0]]
    for index, limit in ((1, limits.min), (2, limits.max)):
        made = f"{node.output} limit {index}"
        names.append(node.inputs[index] if node.has(index) else t.constant(made, np.array(limit, kind)))
    yield Node(f"Clip {kind}", node.name, tuple(names), node.output)


def _where(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    kind = t.values[node.output].dtype
    yield node if kind == FLOAT else Node(f"Where {kind}", node.name, node.inputs, node.output)


def _product(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Make matrices of vectors."""
    del outputs
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


def _resize(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    shape, out, attributes = t.shape(node.inputs[0]), t.shape(node.output), dict(node.attributes)
    if t.is_float(node.inputs[0]) and repeats_elements(node, shape, out):
        yield node
        return
    rank = len(shape)
    axes = [d % rank for d in attributes.get("axes") or range(rank)]
    scales = {d: m / n for d, (n, m) in enumerate(zip(shape, out, strict=True))}
    given = _floats(t, node, 2 if node.operator == "Resize" else 1)
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
    region = _floats(t, node, 1) if node.operator == "Resize" else []
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


def _floats(t: Translator, node: Node, index: int) -> list[float]:
    if not node.has(index):
        return []
    found = t.constants.get(node.inputs[index])
    if found is None:
        raise node.refuse(f"input {index} is computed, which is not covered")
    return [float(n) for n in found.reshape(-1)]


def _moved(t: Translator, node: Node, first: Shape, order: Sequence[int]) -> Iterator[Node]:
    """View a tensor in a shape, transpose it, and view it in that of the result."""
    viewed = t.step(node, VIEW, node.inputs[:1], first, "parts")
    yield viewed
    turned = t.step(
        node, "Transpose", (viewed.output,), tuple(first[d] for d in order), "turned", perm=list(order)
    )
    yield from _transpose(t, turned, ())
    yield Node(VIEW, node.name, (turned.output,), node.output)


def _depth_to_space(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    n, c, h, w = t.shape(node.inputs[0])
    b = node.attributes["blocksize"]
    if node.attributes.get("mode", "DCR") == "DCR":
        return _moved(t, node, (n, b, b, c // b**2, h, w), (0, 3, 4, 1, 5, 2))
    return _moved(t, node, (n, c // b**2, b, b, h, w), (0, 1, 4, 2, 5, 3))


def _space_to_depth(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    n, c, h, w = t.shape(node.inputs[0])
    b = node.attributes["blocksize"]
    return _moved(t, node, (n, c, h // b, b, w // b, b), (0, 3, 5, 1, 2, 4))


_REDUCED = ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceMean", "ReduceL1", "ReduceSumSquare")


_OF_NOTHING: Mapping[str, float] = {
    "MatMul": 0.0,
    "ReduceL1": 0.0,
    "ReduceL2": 0.0,
    "ReduceLogSum": -np.inf,
    "ReduceLogSumExp": -np.inf,
    "ReduceMax": -np.inf,
    "ReduceMin": np.inf,
    "ReduceProd": 1.0,
    "ReduceSum": 0.0,
    "ReduceSumSquare": 0.0,
}
"""Operator to its result on no elements."""


def _logarithm(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Divide ReduceLogSum and ReduceLogSumExp into parts."""
    del outputs
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


def _group_normalization(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
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


def _rms_normalization(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
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


def _layer_normalization(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Compute the mean and the inverse of the deviation too, where they are asked for."""
    yield node
    shape = t.shape(node.inputs[0])
    first = node.attributes.get("axis", -1) % len(shape)
    kept = tuple(n if d < first else 1 for d, n in enumerate(shape))
    if not any(outputs[1:]):
        return
    mean, inverse = [*outputs[1:], "", ""][:2]
    mean, inverse = mean or f"{node.output} mean", inverse or f"{node.output} inverse"
    t.values |= {mean: Value(kept), inverse: Value(kept)}
    axes = {"axes": list(range(first, len(shape)))}
    yield Node("ReduceMean", node.name, node.inputs[:1], mean, axes)
    apart = t.step(node, "Sub", (node.inputs[0], mean), shape, "apart")
    square = t.step(node, "Mul", (apart.output,) * 2, shape, "square")
    eps = t.constant(f"{node.output} epsilon", np.array(node.attributes.get("epsilon", 1e-5), np.float32))
    variance = t.step(node, "ReduceMean", (square.output,), kept, "variance", **axes)
    moved = t.step(node, "Add", (variance.output, eps), kept, "moved")
    root = t.step(node, "Sqrt", (moved.output,), kept, "root")
    yield from (apart, square, variance, moved, root, Node("Reciprocal", node.name, (root.output,), inverse))


def _along(t: Translator, node: Node, index: int, what: str) -> str:
    """Return a constant of one number for each element of an axis, as a tensor that is broadcast."""
    found = t.constants.get(node.inputs[index])
    rank = len(t.shape(node.inputs[0]))
    if found is None or node.attributes.get("block_size"):
        raise node.refuse(f"input {index} is computed, or of blocks, which is not covered")
    wide = [1] * rank
    if found.size > 1:
        wide[node.attributes.get("axis", 1)] = found.size
    array = np.asarray(found, np.float32)
    return t.constant(f"{node.output} {what}", array.reshape(wide) if found.size > 1 else array.reshape(()))


def _dequantized(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Divide DequantizeLinear into a cast, a difference and a product."""
    del outputs
    shape, last = t.shape(node.output), f"{node.output} number"
    t.values[last] = Value(shape)
    yield Node(f"Cast {t.values[node.inputs[0]].dtype}", node.name, node.inputs[:1], last)
    if node.has(2):
        moved = t.step(node, "Sub", (last, _along(t, node, 2, "zero")), shape, "moved")
        yield moved
        last = moved.output
    yield t.step(node, "Mul", (last, _along(t, node, 1, "scale")), shape)


def _quantized(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Divide QuantizeLinear into a quotient, its rounding, and a cast of what is within the type."""
    del outputs
    shape, kind = t.shape(node.output), t.values[node.output].dtype
    share = t.step(node, "Div", (node.inputs[0], _along(t, node, 1, "scale")), shape, "share")
    whole = t.step(node, "Round", (share.output,), shape, "whole")
    yield from (share, whole)
    last = whole.output
    if node.has(2):
        moved = t.step(node, "Add", (last, _along(t, node, 2, "zero")), shape, "moved")
        yield moved
        last = moved.output
    limits = np.iinfo(kind)
    names = [
        t.constant(f"{node.output} limit {n}", np.array(limit, np.float32))
        for n, limit in enumerate((limits.min, limits.max))
    ]
    clipped = t.step(node, "Clip", (last, *names), shape, "clipped")
    yield from (clipped, Node(f"Cast {kind}", node.name, (clipped.output,), node.output))


def _lp_normalization(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Divide LpNormalization into a norm and a quotient; what has the norm 0 stays 0."""
    del outputs
    shape = t.shape(node.output)
    d = node.attributes.get("axis", -1) % len(shape)
    kept = tuple(1 if i == d else n for i, n in enumerate(shape))
    operator = "ReduceL1" if node.attributes.get("p", 2) == 1 else "ReduceL2"
    norm = t.step(node, operator, node.inputs, kept, "norm", axes=[d])
    least = t.constant(f"{node.output} least", np.array(1e-30, np.float32))
    above = t.step(node, "Max", (norm.output, least), kept, "above")
    yield from (norm, above, t.step(node, "Div", (node.inputs[0], above.output), shape))


def _skip_normalization(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Divide (Skip)LayerNormalization of ONNX Runtime into an addition and a normalization."""
    simple = "Simplified" in node.operator
    shape, added = t.shape(node.inputs[0]), list(node.inputs[:2])
    bias = 3 if simple else 4
    if node.has(bias):
        added.append(node.inputs[bias])
    total = outputs[3] if len(outputs) > 3 and outputs[3] else f"{node.output} sum"
    t.values[total] = Value(shape)
    yield Node("Sum", node.name, tuple(added), total)
    attributes = {"axis": -1, "epsilon": node.attributes.get("epsilon", 1e-12 if not simple else 1e-5)}
    inputs = (total, node.inputs[2], *((node.inputs[3],) if not simple and node.has(3) else ()))
    made = Node("LayerNormalization", node.name, inputs, node.output, attributes)
    yield from _rms_normalization(t, made, ()) if simple else (made,)


def _mean(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    shape = t.shape(node.output)
    total = t.step(node, "Sum", node.inputs, shape, "sum")
    share = t.constant(f"{node.output} share", np.array(1 / len(node.inputs), np.float32))
    yield from (total, t.step(node, "Mul", (total.output, share), shape))


def _shape(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    shape = t.shape(node.inputs[0])
    if node.operator == "Shape":
        start, end = node.attributes.get("start", 0), node.attributes.get("end")
        t.constant(node.output, np.array(shape[start:end], np.int64))
    elif node.operator == "Size":
        t.constant(node.output, np.array(prod(shape), np.int64))
    else:
        value = t.values[node.output]
        t.constant(
            node.output,
            np.eye(value.shape[0], value.shape[1], node.attributes.get("k", 0)).astype(value.dtype),
        )
    yield from ()


def _filled(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Compute ConstantOfShape, whose shape is known."""
    del outputs
    value = t.values[node.output]
    given = node.attributes.get("value")
    t.constant(node.output, np.full(value.shape, 0 if given is None else given.reshape(()), value.dtype))
    yield from ()


def _pool(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    if len(outputs) > 1 and outputs[1]:
        t.values.setdefault(outputs[1], Value(t.shape(node.output), "int64"))
        yield Node(INDEXED_POOL, node.name, node.inputs, node.output, node.attributes, (outputs[1],))
    else:
        yield from t.typed(node)


def _gelu(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Translate the Gelu operators of ONNX Runtime, of which two add a bias."""
    del outputs
    x, shape = node.inputs[0], t.shape(node.output)
    if node.has(1):
        added = t.step(node, "Add", node.inputs[:2], shape, "biased")
        yield added
        x = added.output
    attributes = {**node.attributes, **({"approximate": "tanh"} if node.operator == "FastGelu" else {})}
    yield Node("Gelu", node.name, (x,), node.output, attributes)


def _top(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    value = t.values[node.inputs[0]]
    t.numbers(node, 1)
    names = [each or f"{next(filter(None, outputs))} unused" for each in [*outputs, ""][:2]]
    shape = t.shape(next(filter(None, outputs)))
    t.values |= {names[0]: Value(shape, value.dtype), names[1]: Value(shape, "int64")}
    yield Node("TopK", node.name, node.inputs[:1], names[0], node.attributes, (names[1],))


def _hardmax(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    del outputs
    shape = t.shape(node.output)
    d = node.attributes.get("axis", -1) % len(shape)
    found = f"{node.output} found"
    t.values[found] = Value(shape[:d] + shape[d + 1 :], "int64")
    yield Node("ArgMax", node.name, node.inputs, found, {"axis": d, "keepdims": 0})
    values = t.constant(f"{node.output} values", np.array([0, 1], np.float32))
    depth = t.constant(f"{node.output} depth", np.array(shape[d], np.int64))
    yield Node("OneHot", node.name, (found, depth, values), node.output, {"axis": d})


def _transposed(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Write the padding of a transposed convolution that is given by its result."""
    del outputs
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


def _local_response(t: Translator, node: Node, outputs: Sequence[str]) -> Iterator[Node]:
    """Divide LRN: the sums over neighboring channels are a product with a matrix of bands."""
    del outputs
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


_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_VIEWS, _view),
    "Cast": _cast,
    "CastLike": _cast,
    "Clip": _clip,
    "Concat": _concatenation,
    "BiasGelu": _gelu,
    "ConstantOfShape": _filled,
    "ConvTranspose": _transposed,
    "DepthToSpace": _depth_to_space,
    "DequantizeLinear": _dequantized,
    "Dropout": _dropout,
    "Expand": _copy,
    "FastGelu": _gelu,
    "EyeLike": _shape,
    "Gather": _gather,
    "GroupNormalization": _group_normalization,
    "Hardmax": _hardmax,
    "LRN": _local_response,
    "LayerNormalization": _layer_normalization,
    "LpNormalization": _lp_normalization,
    "MatMul": _product,
    "MaxPool": _pool,
    "Mean": _mean,
    "Pad": _pad,
    "QuantizeLinear": _quantized,
    "RMSNormalization": _rms_normalization,
    "ReduceLogSum": _logarithm,
    "ReduceLogSumExp": _logarithm,
    "Resize": _resize,
    "Shape": _shape,
    "SimplifiedLayerNormalization": _rms_normalization,
    "Size": _shape,
    "SkipLayerNormalization": _skip_normalization,
    "SkipSimplifiedLayerNormalization": _skip_normalization,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Tile": _copy,
    "TopK": _top,
    "Transpose": _transpose,
    "Upsample": _resize,
    "Where": _where,
}
"""Operator of ONNX to what translates it, where it is not that of a network."""
