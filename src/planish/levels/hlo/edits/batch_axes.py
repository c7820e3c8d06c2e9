"""Batch of a function: examples of its inputs that never meet on their way to its results.

There is a rule for each operation: along which dimension of its results it carries a batch, if it keeps the
examples apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from planish.core import ScheduleError
from planish.levels.hlo.ir import ir, tensor_type, walk
from planish.levels.hlo.ir.mlir import ELEMENTWISE, PRODUCTS, Value, integers, shape_of, stablehlo

Axes = Sequence[int | None]
"""Of values, one after the other: the dimension that the batch lies along; None: not of the batch at all."""

Carried = tuple[int, Axes]
"""The dimension of the batch in all results; and in each operand, None for those that are taken as they are.

What is not of the batch may still lie beside it, as a bias for each example does: then it is cut alike.
"""


def carried(op: ir.Operation, axes: Axes) -> Carried:
    """Return the axis of the batch in an operation's results, and in its operands.

    Args:
        op: has an operand of the batch.
        axes: of its operands.

    Raises:
        ScheduleError: it mixes examples, or it is not known whether it does.
    """
    rule = _carry_elementwise if op.name in ELEMENTWISE else _RULES.get(op.name)
    if rule is None:
        raise _mixes(op)
    return rule(op, axes)


def _mixes(op: ir.Operation) -> ScheduleError:
    return ScheduleError(f"{op.name} may mix the examples of a batch", "Such a module is not tiled.")


def _the_axis(op: ir.Operation, axes: Axes) -> int:
    """Return the axis of the batch, which must be the same in all its operands."""
    found = {axis for axis in axes if axis is not None}
    if len(found) != 1:
        raise _mixes(op)
    return found.pop()


def _carry_elementwise(op: ir.Operation, axes: Axes) -> Carried:
    return _beside(op, _the_axis(op, axes))


def _beside(op: ir.Operation, axis: int) -> Carried:
    """All operands but scalars lie along the same dimension as the result."""
    return axis, [axis if shape_of(operand) else None for operand in op.operands]


def _of_one(result: Callable[[ir.Operation, int], int | None]) -> Callable[[ir.Operation, Axes], Carried]:
    """Make a rule of one for operations whose first operand alone may be of the batch."""

    def rule(op: ir.Operation, axes: Axes) -> Carried:
        axis = axes[0]
        found = None if axis is None or any(a is not None for a in axes[1:]) else result(op, axis)
        if axis is None or found is None:
            raise _mixes(op)
        return found, axes

    return rule


def _broadcast(op: ir.Operation, axis: int) -> int | None:
    to = integers(op, "broadcast_dimensions")[axis]
    return to if shape_of(op.results[0])[to] == shape_of(op.operands[0])[axis] else None


def _reshaped(op: ir.Operation, axis: int) -> int | None:
    old, new = shape_of(op.operands[0]), shape_of(op.results[0])
    before = prod(old[:axis])
    # With as many elements before it and as long, a dimension stays what it was.
    return next((d for d in range(len(new)) if prod(new[:d]) == before and new[d] == old[axis]), None)


def _sliced(op: ir.Operation, axis: int) -> int | None:
    first, last = integers(op, "start_indices")[axis], integers(op, "limit_indices")[axis]
    whole = (first, last, integers(op, "strides")[axis]) == (0, shape_of(op.operands[0])[axis], 1)
    return axis if whole else None


def _padded(op: ir.Operation, axis: int) -> int | None:
    sides = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return None if any(integers(op, side)[axis] for side in sides) else axis


def _transposed(op: ir.Operation, axis: int) -> int | None:
    return integers(op, "permutation").index(axis)


def _reversed(op: ir.Operation, axis: int) -> int | None:
    return None if axis in integers(op, "dimensions") else axis


def _concatenated(op: ir.Operation, axes: Axes) -> Carried:
    axis = _the_axis(op, axes)
    if ir.IntegerAttr(op.attributes["dimension"]).value == axis:
        raise _mixes(op)
    return _beside(op, axis)


def _reduced(op: ir.Operation, axes: Axes) -> Carried:
    """A reduction over other dimensions; its starts are scalars."""
    axis, gone = _the_axis(op, axes), integers(op, "dimensions")
    if axis in gone:
        raise _mixes(op)
    return axis - sum(dimension < axis for dimension in gone), _beside(op, axis)[1]


def _windows(op: ir.Operation, axes: Axes) -> Carried:
    """Windows of one example, one after the other."""
    axis, given = _the_axis(op, axes), op.attributes
    plain = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    if any(name in given and integers(op, name)[axis] != 1 for name in plain):
        raise _mixes(op)
    if "padding" in given:
        padding = ir.DenseIntElementsAttr(given["padding"])
        if padding[2 * axis] or padding[2 * axis + 1]:
            raise _mixes(op)
    return _beside(op, axis)


def _convolved(op: ir.Operation, axes: Axes) -> Carried:
    """One example after the other, all with the same kernel."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    groups = ir.IntegerAttr(op.attributes["batch_group_count"]).value
    if axes[1] is not None or axes[0] != numbers.input_batch_dimension or groups != 1:
        raise _mixes(op)
    return numbers.output_batch_dimension, axes


def _multiplied(op: ir.Operation, axes: Axes) -> Carried:
    """A product: the batch is a dimension of batches, or a free one of one side."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batching = (list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions))
    contracted = (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions))
    positions = {pair.index(axis) for pair, axis in zip(batching, axes, strict=True) if axis in pair}
    if positions:
        position = positions.pop()
        sides = [pair[position] for pair in batching]
        if positions or any(axis not in (None, side) for axis, side in zip(axes, sides, strict=True)):
            raise _mixes(op)
        return position, sides
    side = 0 if axes[0] is not None else 1
    if axes[1 - side] is not None or axes[side] in contracted[side]:
        raise _mixes(op)
    bound = [{*batching[i], *contracted[i]} for i in range(2)]
    free = [[d for d in range(len(shape_of(op.operands[i]))) if d not in bound[i]] for i in range(2)]
    # A result has the batches first, then what is free of the left side, then of the right.
    position = len(batching[0]) + side * len(free[0])
    return position + free[side].index(axes[side] or 0), axes


_RULES: Mapping[str, Callable[[ir.Operation, Axes], Carried]] = {
    "stablehlo.broadcast_in_dim": _of_one(_broadcast),
    "stablehlo.reshape": _of_one(_reshaped),
    "stablehlo.slice": _of_one(_sliced),
    "stablehlo.pad": _of_one(_padded),
    "stablehlo.transpose": _of_one(_transposed),
    "stablehlo.reverse": _of_one(_reversed),
    "stablehlo.concatenate": _concatenated,
    "stablehlo.reduce": _reduced,
    "stablehlo.reduce_window": _windows,
    "stablehlo.convolution": _convolved,
    "stablehlo.dot_general": _multiplied,
}


@dataclass(frozen=True)
class FunctionBatch:
    """A function's batch.

    Args:
        size: how many examples.
        axes: the values of the batch, with the dimension that it lies along.
        operations: those that make them, in order.
        operands: of each, the dimensions along which its operands are cut.
    """

    size: int
    axes: dict[Value, int]
    operations: Sequence[ir.Operation]
    operands: Sequence[Axes]


def batch_of(block: ir.Block) -> FunctionBatch:
    """Find the batch of a function.

    It lies along the first dimension of one input or of several. What is tried first is as long as the first
    result, and is all inputs of that length. Where a function has convolutions or products, one of them reads
    the batch: the moments of an optimiser have numbers that never meet, too, and are none.

    Args:
        block: the function's body.

    Raises:
        ScheduleError: examples meet, as in the gradient of a training step, or there is no batch.
    """
    why: ScheduleError | None = None
    for arguments in _possible(block):
        try:
            return _worth(block, _followed(block, arguments))
        except ScheduleError as error:
            why = why or error
    raise why or ScheduleError("the function has no batch", "Its inputs need a first dimension in common.")


def _possible(block: ir.Block) -> Iterator[Sequence[Value]]:
    lengths: dict[int, list[Value]] = {}
    for argument in block.arguments:
        type_ = tensor_type(argument.type)
        if type_ is not None and type_.shape and type_.shape[0] > 1:
            lengths.setdefault(type_.shape[0], []).append(argument)
    result = tensor_type(_end(block).operands[0].type) if len(_end(block).operands) else None
    wanted = result.shape[0] if result and result.shape else 0
    for _, found in sorted(lengths.items(), key=lambda item: item[0] != wanted):
        yield found
        if len(found) > 1:
            yield from ([argument] for argument in found)


def _followed(block: ir.Block, arguments: Sequence[Value]) -> FunctionBatch:
    """Follow some inputs through the function."""
    axes = dict.fromkeys(arguments, 0)
    batch = FunctionBatch(shape_of(arguments[0])[0], axes, operations := [], operands := list[Axes]())
    for op in map(_operation, list(block.operations)[:-1]):
        given = [axes.get(operand) for operand in op.operands]
        if any(value in axes for inner in walk(op)[1:] for value in inner.operands):
            raise ScheduleError(f"a region of {op.name} uses the batch", "Such a module is not tiled.")
        if all(axis is None for axis in given):
            continue
        result, wanted = carried(op, given)
        if any(shape_of(value)[result] != batch.size for value in op.results):
            raise ScheduleError(f"{op.name} changes the batch", "Such a module is not tiled.")
        operations.append(op)
        operands.append(wanted)
        axes.update(dict.fromkeys(op.results, result))
    if not any(value in axes for value in _end(block).operands):
        raise ScheduleError("no result depends on the batch", "Such a module is not tiled.")
    return batch


def _worth(block: ir.Block, batch: FunctionBatch) -> FunctionBatch:
    """Return a batch if convolutions or products read it; raises ScheduleError where none does."""
    heavy = any(inner.name in PRODUCTS for op in block.operations for inner in walk(op.operation))
    if heavy and not any(op.name in PRODUCTS for op in batch.operations):
        raise ScheduleError("no convolution or product reads the batch", "Such a module is not tiled.")
    return batch


def _operation(op: ir.OpView | ir.Operation) -> ir.Operation:
    return op.operation


def _end(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation
