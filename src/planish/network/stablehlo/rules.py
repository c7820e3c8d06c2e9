"""Rules of translation: operations of StableHLO on each element, and moves of elements, as nodes of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from planish.core import ProgramError
from planish.levels.hlo.ir.mlir import integer, integers, ir, stablehlo, type_of
from planish.network.ir import Array, Shape
from planish.network.stablehlo.writer import GraphWriter, Tensor

Rule = Callable[[GraphWriter, ir.Operation, Sequence[Tensor]], Sequence[Tensor]]
"""Writes an operation on values; returns its results."""

DTYPES: Mapping[str, str] = {
    "i1": "bool",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
"""Element types that are covered, and NumPy's names of them."""


def refuse(op: ir.Operation, why: str) -> ProgramError:
    """Return the error for something of an operation that is not covered."""
    return ProgramError(f"operation '{op.name}': {why}", HINT)


HINT = "The operations that are covered are listed in docs/how-to/compile.md."


def result_type(op: ir.Operation, index: int = 0) -> tuple[Shape, str]:
    """Return the shape and NumPy's element type of a result; raises ProgramError for other types."""
    found = type_of(op.results[index])
    if found.element not in DTYPES:
        raise refuse(op, f"elements of type {found.element} are not covered")
    return found.shape, DTYPES[found.element]


def array_of(op: ir.Operation) -> Array:
    """Return the elements of a constant; of a splat, there is one."""
    shape, dtype = result_type(op)
    value = op.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr):
        raise refuse(op, "constants outside of the module's text are not covered")
    if value.is_splat:
        number = value.get_splat_value()
        assert isinstance(number, ir.IntegerAttr | ir.FloatAttr | ir.BoolAttr)
        return np.full((1,) * len(shape), number.value, dtype)
    return np.array(value).astype(dtype, copy=False).reshape(shape)


def _constant(w: GraphWriter, op: ir.Operation, _operands: Sequence[Tensor]) -> Sequence[Tensor]:
    return [replace(w.constant(array_of(op)), shape=result_type(op)[0])]


def _iota(w: GraphWriter, op: ir.Operation, _operands: Sequence[Tensor]) -> Sequence[Tensor]:
    shape, dtype = result_type(op)
    axis = integer(op, "iota_dimension")
    extents = tuple(extent if d == axis else 1 for d, extent in enumerate(shape))
    return [replace(w.constant(np.arange(shape[axis], dtype=dtype).reshape(extents)), shape=shape)]


# Element-wise operations


def _unary(operator: str) -> Rule:
    return lambda w, op, operands: [w.elementwise(operator, operands, result_type(op)[1])]


def _binary(operator: str, of_truths: str = "") -> Rule:
    def rule(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        truths = operands[0].dtype == "bool"
        if truths and not of_truths:
            raise refuse(op, "truth values are not covered")
        return [w.elementwise(of_truths if truths else operator, operands)]

    return rule


def _of_one(write: Callable[[GraphWriter, Tensor], Tensor]) -> Rule:
    return lambda w, _op, operands: [write(w, operands[0])]


def _cube_root(w: GraphWriter, x: Tensor) -> Tensor:
    size = w.elementwise("Abs", [x])
    root = w.elementwise("Pow", [size, w.scalar_like(size, 1 / 3)])
    return w.elementwise("Mul", [w.elementwise("Sign", [x]), root])


def _exponential_minus_one(w: GraphWriter, x: Tensor) -> Tensor:
    made = w.elementwise("Exp", [x])
    return w.elementwise("Sub", [made, w.scalar_like(made, 1)])


def _erfc(w: GraphWriter, x: Tensor) -> Tensor:
    made = w.elementwise("Erf", [x])
    return w.elementwise("Sub", [w.scalar_like(made, 1), made])


def _is_finite(w: GraphWriter, x: Tensor) -> Tensor:
    either = [w.elementwise(name, [x], "bool") for name in ("IsInf", "IsNaN")]
    return w.elementwise("Not", [w.elementwise("Or", either)])


_COMPARISONS = {"EQ": "Equal", "GT": "Greater", "GE": "GreaterOrEqual", "LT": "Less", "LE": "LessOrEqual"}


def enumerated(attribute: ir.Attribute) -> str:
    """Return the last word of an attribute such as `#stablehlo<comparison_direction GT>`."""
    return str(attribute).rpartition(" ")[2].rstrip(">")


def _compare(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    if "compare_type" in op.attributes and enumerated(op.attributes["compare_type"]) == "TOTALORDER":
        raise refuse(op, "a total order of floats is not covered")
    direction = enumerated(op.attributes["comparison_direction"])
    made = w.elementwise(_COMPARISONS.get(direction, "Equal"), operands, "bool")
    return [made if direction in _COMPARISONS else w.elementwise("Not", [made])]


def as_wide(w: GraphWriter, tensor: Tensor, shape: Shape) -> Tensor:
    """Return a value that may be one number as one of a shape."""
    return tensor if tensor.shape == shape else w.broadcast(tensor, [], shape)


def _select(w: GraphWriter, _op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    test, one, other = operands
    if (known := w.known_scalar(test)) is not None:
        return [one if known else other]
    test = as_wide(w, test, one.shape)
    if one.dtype != "bool":
        return [w.elementwise("Where", [test, one, other])]
    # ONNX Runtime chooses among numbers alone.
    chosen = w.elementwise("And", [test, one])
    return [w.elementwise("Or", [chosen, w.elementwise("And", [w.elementwise("Not", [test]), other])])]


def _clamp(w: GraphWriter, _op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    low, value, high = operands
    bounds = [w.known_scalar(low), w.known_scalar(high)]
    if all(each is not None for each in bounds):
        limits = [w.weight(np.array(each, value.dtype)) for each in bounds]
        return [replace(value, name=w.emit("Clip", [value.name, *limits]))]
    least = w.elementwise("Max", [value, as_wide(w, low, value.shape)])
    return [w.elementwise("Min", [least, as_wide(w, high, value.shape)])]


def _reduce_precision(_w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    if integer(op, "exponent_bits") < 8 or integer(op, "mantissa_bits") < 23:
        raise refuse(op, "rounding to fewer bits than those of float32 is not covered")
    return operands


# Shapes


def _broadcast(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    return [w.broadcast(operands[0], integers(op, "broadcast_dimensions"), result_type(op)[0])]


def _slice(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    bounds = [integers(op, name) for name in ("start_indices", "limit_indices", "strides")]
    return [w.sliced(operands[0], *bounds)]


def _dynamic_slice(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    value, sizes = operands[0], integers(op, "slice_sizes")
    starts = _known_starts(w, op, operands[1:], sizes, value.shape)
    limits = [start + size for start, size in zip(starts, sizes, strict=True)]
    return [w.sliced(value, starts, limits, [1] * len(sizes))]


def _known_starts(
    w: GraphWriter, op: ir.Operation, starts: Sequence[Tensor], sizes: Sequence[int], shape: Shape
) -> list[int]:
    """Return where a part of a value begins, so that all of it is within the value."""
    found = list[int]()
    for each, size, extent in zip(starts, sizes, shape, strict=True):
        start = w.known_scalar(each)
        if start is None and size != extent:
            raise refuse(op, "a computed start is not covered")
        found.append(min(max(int(start or 0), 0), extent - size))
    return found


def _dynamic_update_slice(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    value, update, *starts = operands
    return [_replaced(w, value, update, _known_starts(w, op, starts, update.shape, value.shape))]


def _replaced(w: GraphWriter, value: Tensor, update: Tensor, starts: Sequence[int]) -> Tensor:
    """Return a value, a part of which is another one."""
    smaller = [d for d, extent in enumerate(update.shape) if extent < value.shape[d]]
    if not smaller:
        return update
    d, *rest = smaller
    first, last = starts[d], starts[d] + update.shape[d]
    if rest:
        bounds = [0] * len(starts), list(value.shape)
        bounds[0][d], bounds[1][d] = first, last
        inner = w.sliced(value, *bounds, [1] * len(starts))
        update = _replaced(w, inner, update, [0 if e == d else start for e, start in enumerate(starts)])
    before, after = w.parts(value, d, 0, first), w.parts(value, d, last, value.shape[d])
    return w.join([*before, update, *after], d)


def reversed_along(w: GraphWriter, value: Tensor, dimensions: Sequence[int]) -> Tensor:
    """Reverse a value along some dimensions."""
    turned = [d in dimensions for d in range(len(value.shape))]
    starts = [extent - 1 if turn else 0 for extent, turn in zip(value.shape, turned, strict=True)]
    limits = [-1 if turn else extent for extent, turn in zip(value.shape, turned, strict=True)]
    return w.sliced(value, starts, limits, [-1 if turn else 1 for turn in turned])


def _pad(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    value, filling = operands
    low, high, interior = (
        integers(op, name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    if any(interior):
        raise refuse(op, "padding between elements is not covered")
    starts = [max(0, -each) for each in low]
    limits = [extent - max(0, -each) for extent, each in zip(value.shape, high, strict=True)]
    value = w.sliced(value, starts, limits, [1] * len(low))
    pads = [max(0, each[d]) for each in (low, high) for d in value.order]
    if not any(pads):
        return [value]
    name = w.emit("Pad", [w.dense(value, value.order), w.whole_numbers(pads), w.dense(filling)])
    shape = result_type(op)[0]
    return [Tensor(name, shape, value.dtype, value.order, tuple(shape[d] for d in value.order))]


def _gather(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    """Write a look-up along one dimension, as of the rows of a table."""
    table, indices = operands
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    along, sizes, last = list(numbers.start_index_map), integers(op, "slice_sizes"), numbers.index_vector_dim
    whole = [1 if d in along else extent for d, extent in enumerate(table.shape)]
    one = len(along) == 1 and list(numbers.collapsed_slice_dims) == along and sizes == whole
    if not one or numbers.operand_batching_dims:
        raise refuse(op, "only look-ups of whole slices along one dimension are covered")
    if last < len(indices.shape):
        indices = w.with_shape(indices, (*indices.shape[:last], *indices.shape[last + 1 :]))
    axis = table.axis(along[0])
    # An index outside of the table is that of its first or last slice.
    limits = [w.weight(np.array(each, indices.dtype)) for each in (0, table.shape[along[0]] - 1)]
    wrapped = w.emit("Clip", [w.dense(indices), *limits])
    name = w.emit("Gather", [w.dense(table, table.order), wrapped], axis=axis)
    shape, dtype = result_type(op)
    offsets = list(numbers.offset_dims)
    batch = [d for d in range(len(shape)) if d not in offsets]
    kept = [d for d in range(len(table.shape)) if d != along[0]]
    place = dict(zip(kept, offsets, strict=True))
    before, after = ([place[d] for d in part] for part in (table.order[:axis], table.order[axis + 1 :]))
    order = (*before, *batch, *after)
    return [Tensor(name, shape, dtype, order, tuple(shape[d] for d in order))]


def _top_k(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    (shape, dtype), kind = result_type(op), result_type(op, 1)[1]
    inputs = [w.dense(operands[0]), w.whole_numbers(shape[-1:])]
    values, indices = w.emit_several("TopK", inputs, 2, axis=-1)
    return [w.plain(values, shape, dtype), w.cast(w.plain(indices, shape, "int64"), kind)]


_UNARY = {
    "stablehlo": {
        "abs": "Abs", "ceil": "Ceil", "cosine": "Cos", "exponential": "Exp", "floor": "Floor", "log": "Log",
        "logistic": "Sigmoid", "negate": "Neg", "round_nearest_even": "Round", "sign": "Sign", "sine": "Sin",
        "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
    },
    "chlo": {
        "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh", "atan": "Atan", "atanh": "Atanh",
        "cosh": "Cosh", "erf": "Erf", "is_inf": "IsInf", "sinh": "Sinh", "tan": "Tan",
    },
}  # fmt: skip

ELEMENT_RULES: Mapping[str, Rule] = {
    **{f"{kind}.{name}": _unary(op) for kind, names in _UNARY.items() for name, op in names.items()},
    "stablehlo.add": _binary("Add", "Or"),
    "stablehlo.and": _binary("BitwiseAnd", "And"),
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.cbrt": _of_one(_cube_root),
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.concatenate": lambda w, op, x: [w.join(x, integer(op, "dimension"))],
    "stablehlo.constant": _constant,
    "stablehlo.convert": lambda w, op, x: [w.cast(x[0], result_type(op)[1])],
    "stablehlo.divide": _binary("Div"),
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.exponential_minus_one": _of_one(_exponential_minus_one),
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.is_finite": _of_one(_is_finite),
    "stablehlo.log_plus_one": _of_one(
        lambda w, x: w.elementwise("Log", [w.elementwise("Add", [x, w.scalar_like(x, 1)])])
    ),
    "stablehlo.maximum": _binary("Max", "Or"),
    "stablehlo.minimum": _binary("Min", "And"),
    "stablehlo.multiply": _binary("Mul", "And"),
    "stablehlo.not": _of_one(lambda w, x: w.elementwise("Not" if x.dtype == "bool" else "BitwiseNot", [x])),
    "stablehlo.optimization_barrier": lambda _w, _op, operands: operands,
    "stablehlo.or": _binary("BitwiseOr", "Or"),
    "stablehlo.pad": _pad,
    "stablehlo.power": _binary("Pow"),
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.remainder": lambda w, _, operands: [w.elementwise("Mod", operands, fmod=1)],
    "stablehlo.reshape": lambda w, op, x: [w.with_shape(x[0], result_type(op)[0])],
    "stablehlo.reverse": lambda w, op, x: [reversed_along(w, x[0], integers(op, "dimensions"))],
    "stablehlo.rsqrt": _of_one(lambda w, x: w.elementwise("Reciprocal", [w.elementwise("Sqrt", [x])])),
    "stablehlo.select": _select,
    "stablehlo.slice": _slice,
    "stablehlo.subtract": _binary("Sub"),
    "stablehlo.transpose": lambda w, op, x: [w.transposed(x[0], integers(op, "permutation"))],
    "stablehlo.xor": _binary("BitwiseXor", "Xor"),
    "chlo.erfc": _of_one(_erfc),
    "chlo.square": _of_one(lambda w, x: w.elementwise("Mul", [x, x])),
    "chlo.top_k": _top_k,
}
"""Rules of operations on each element, and of those that move elements."""
