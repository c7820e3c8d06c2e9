"""Axes of an operation's operands and results that are one: to cut one of them is to cut all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

from planish.levels.hlo.ir.mlir import ELEMENTWISE, Value, dot_axes, integer, integers, ir, shape_of

Axis = tuple[Value, int]
Tie = tuple[Axis, ...]


def ties(op: ir.Operation) -> list[Tie]:
    """List axes that are one. An axis of the operation that is in no tie cannot be cut."""
    rule = _elementwise if op.name in ELEMENTWISE else _RULES.get(op.name)
    return list(rule(op)) if rule else []


def _elementwise(op: ir.Operation) -> Iterator[Tie]:
    values = [op.results[0], *(value for value in op.operands if shape_of(value))]
    for axis in range(len(shape_of(op.results[0]))):
        yield tuple((value, axis) for value in values)


def _broadcast(op: ir.Operation) -> Iterator[Tie]:
    given, result = op.operands[0], op.results[0]
    to = integers(op, "broadcast_dimensions")
    for axis, size in enumerate(shape_of(result)):
        if axis in to and shape_of(given)[to.index(axis)] == size:
            yield (result, axis), (given, to.index(axis))
        else:
            yield ((result, axis),)


def _reshaped(op: ir.Operation) -> Iterator[Tie]:
    """Axes as long as before with as many elements before them, and so after them."""
    given, result = op.operands[0], op.results[0]
    old, new = shape_of(given), shape_of(result)
    positions = {(prod(new[:axis]), size): axis for axis, size in enumerate(new) if size > 1}
    for axis, size in enumerate(old):
        to = positions.get((prod(old[:axis]), size))
        if to is not None:
            yield (result, to), (given, axis)


def _transposed(op: ir.Operation) -> Iterator[Tie]:
    for axis, position in enumerate(integers(op, "permutation")):
        yield (op.results[0], axis), (op.operands[0], position)


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
    joined = integer(op, "dimension")
    for axis in range(len(shape_of(op.results[0]))):
        if axis != joined:
            yield tuple((value, axis) for value in (op.results[0], *op.operands))


def _reduced(op: ir.Operation) -> Iterator[Tie]:
    inputs = op.operands[: len(op.results)]
    kept = [axis for axis in range(len(shape_of(inputs[0]))) if axis not in integers(op, "dimensions")]
    for to, axis in enumerate(kept):
        yield *((result, to) for result in op.results), *((value, axis) for value in inputs)


def _multiplied(op: ir.Operation) -> Iterator[Tie]:
    axes, (left, right) = dot_axes(op), op.operands
    for a, b in zip(*axes.summed, strict=True):
        yield (left, a), (right, b)
    for i, (a, b) in enumerate(zip(*axes.batching, strict=True)):
        yield (op.results[0], i), (left, a), (right, b)
    free = [*((left, axis) for axis in axes.free[0]), *((right, axis) for axis in axes.free[1])]
    for i, axis in enumerate(free, len(axes.batching[0])):
        yield (op.results[0], i), axis


_RULES: Mapping[str, Callable[[ir.Operation], Iterator[Tie]]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshaped,
    "stablehlo.transpose": _transposed,
    "stablehlo.slice": _sliced,
    "stablehlo.pad": _padded,
    "stablehlo.concatenate": _joined,
    "stablehlo.reduce": _reduced,
    "stablehlo.dot_general": _multiplied,
}
