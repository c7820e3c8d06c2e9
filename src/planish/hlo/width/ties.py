"""Which axes of an operation's operands and result are one: who cuts one of them cuts all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod
from typing import Any

from planish.hlo.ir import ir
from planish.hlo.ir.mlir import stablehlo
from planish.hlo.lowering import plain_convolution
from planish.hlo.tiling.axes import SAME_PLACE, integers, shape_of

Value = ir.Value[Any]
Axis = tuple[Value, int]
Tie = tuple[Axis, ...]


def ties(op: ir.Operation) -> list[Tie]:
    """List axes that are one. An axis of the operation that is in no tie cannot be cut."""
    if op.name in SAME_PLACE:
        return list(_same_place(op))
    rule = _RULES.get(op.name)
    return list(rule(op)) if rule else []


def _same_place(op: ir.Operation) -> Iterator[Tie]:
    values = [op.results[0], *(value for value in op.operands if shape_of(value))]
    for axis in range(len(shape_of(op.results[0]))):
        yield tuple((value, axis) for value in values)


def _broadcast(op: ir.Operation) -> Iterator[Tie]:
    given, result = op.operands[0], op.results[0]
    to = integers(op, "broadcast_dimensions")
    from_ = {axis: place for place, axis in enumerate(to)}
    for axis, size in enumerate(shape_of(result)):
        place = from_.get(axis)
        if place is not None and shape_of(given)[place] == size:
            yield (result, axis), (given, place)
        else:
            yield ((result, axis),)


def _reshaped(op: ir.Operation) -> Iterator[Tie]:
    """Axes as long as before with as many elements before them, and so behind them."""
    given, result = op.operands[0], op.results[0]
    old, new = shape_of(given), shape_of(result)
    places = {(prod(new[:axis]), size): axis for axis, size in enumerate(new) if size > 1}
    for axis, size in enumerate(old):
        to = places.get((prod(old[:axis]), size))
        if to is not None:
            yield (result, to), (given, axis)


def _transposed(op: ir.Operation) -> Iterator[Tie]:
    for axis, place in enumerate(integers(op, "permutation")):
        yield (op.results[0], axis), (op.operands[0], place)


def _sliced(op: ir.Operation) -> Iterator[Tie]:
    names = ("start_indices", "limit_indices", "strides")
    window = zip(*(integers(op, name) for name in names), shape_of(op.operands[0]), strict=True)
    for axis, (start, limit, stride, size) in enumerate(window):
        if (start, limit, stride) == (0, size, 1):
            yield (op.results[0], axis), (op.operands[0], axis)


def _padded(op: ir.Operation) -> Iterator[Tie]:
    sides = ("edge_padding_low", "edge_padding_high", "interior_padding")
    for axis, widths in enumerate(zip(*(integers(op, side) for side in sides), strict=True)):
        if not any(widths):
            yield (op.results[0], axis), (op.operands[0], axis)


def _joined(op: ir.Operation) -> Iterator[Tie]:
    joined = ir.IntegerAttr(op.attributes["dimension"]).value
    for axis in range(len(shape_of(op.results[0]))):
        if axis != joined:
            yield tuple((value, axis) for value in (op.results[0], *op.operands))


def _reduced(op: ir.Operation) -> Iterator[Tie]:
    if len(op.results) != 1:
        return
    kept = [axis for axis in range(len(shape_of(op.operands[0]))) if axis not in integers(op, "dimensions")]
    for to, axis in enumerate(kept):
        yield (op.results[0], to), (op.operands[0], axis)


def _multiplied(op: ir.Operation) -> Iterator[Tie]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    left, right = op.operands
    batch = list(zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True))
    summed = list(zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True))
    yield from (((left, a), (right, b)) for a, b in summed)
    yield from (((op.results[0], i), (left, a), (right, b)) for i, (a, b) in enumerate(batch))
    place = len(batch)
    for side, value in enumerate((left, right)):
        bound = {pair[side] for pair in (*batch, *summed)}
        for axis in range(len(shape_of(value))):
            if axis not in bound:
                yield (op.results[0], place), (value, axis)
                place += 1


def _convolved(op: ir.Operation) -> Iterator[Tie]:
    """Features of a plain convolution; of a depthwise one all are one, and its groups are counted anew."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    (image, kernel), result = op.operands, op.results[0]
    inputs, outputs = (image, numbers.input_feature_dimension), (result, numbers.output_feature_dimension)
    of_kernel = (kernel, numbers.kernel_output_feature_dimension)
    given = plain_convolution(op)
    yield (image, numbers.input_batch_dimension), (result, numbers.output_batch_dimension)
    if given.groups == 1:
        yield inputs, (kernel, numbers.kernel_input_feature_dimension)
        yield outputs, of_kernel
    elif given.depthwise:
        yield inputs, outputs, of_kernel


_RULES: Mapping[str, Callable[[ir.Operation], Iterator[Tie]]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshaped,
    "stablehlo.transpose": _transposed,
    "stablehlo.slice": _sliced,
    "stablehlo.pad": _padded,
    "stablehlo.concatenate": _joined,
    "stablehlo.reduce": _reduced,
    "stablehlo.dot_general": _multiplied,
    "stablehlo.convolution": _convolved,
}
