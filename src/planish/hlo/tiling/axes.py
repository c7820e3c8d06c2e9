"""Along which dimension of its results an operation carries a batch, if it keeps the examples apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from planish.core import ScheduleError
from planish.hlo.ir import TensorType, ir, tensor_type
from planish.hlo.ir.mlir import stablehlo

Axes = Sequence[int | None]
"""Of values, one after the other: the dimension that the batch lies along; None: not of the batch at all."""

Carried = tuple[int, Axes]
"""The dimension of the batch in all results; and in each operand, None for those that are taken as they are.

What is not of the batch may still lie beside it, as a bias for each example does: then it is cut alike.
"""

SAME_PLACE = frozenset(
    f"{dialect}.{name}"
    for dialect, names in {
        "stablehlo": "abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros "
        "divide exponential exponential_minus_one floor imag is_finite log log_plus_one logistic maximum "
        "minimum multiply negate not or popcnt power real reduce_precision remainder round_nearest_afz "
        "round_nearest_even rsqrt select shift_left shift_right_arithmetic shift_right_logical sign sine "
        "sqrt subtract tan tanh xor",
        # As JAX writes `jnp.square`, exact GELU and others. Those that broadcast by themselves are none.
        "chlo": "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf "
        "is_neg_inf is_pos_inf lgamma next_after polygamma sinh square tan zeta",
    }.items()
    for name in names.split()
)
"""Operations each of whose elements needs the operands' elements at the same place alone, or scalars."""


def carried(op: ir.Operation, axes: Axes) -> Carried:
    """Tell where the batch goes.

    Args:
        op: has an operand of the batch.
        axes: of its operands.

    Raises:
        ScheduleError: it mixes examples, or it is not known whether it does.
    """
    rule = _carry_at_the_same_place if op.name in SAME_PLACE else _RULES.get(op.name)
    if rule is None:
        raise _mixes(op)
    return rule(op, axes)


def _mixes(op: ir.Operation) -> ScheduleError:
    return ScheduleError(f"{op.name} may mix the examples of a batch", "Such a module is not tiled.")


def shape_of(value: ir.Value[Any]) -> tuple[int, ...]:
    """Give a tensor's extents; raises ScheduleError where it is none."""
    return type_of(value).shape


def type_of(value: ir.Value[Any]) -> TensorType:
    """Give a tensor's type; raises ScheduleError where it is none."""
    found = tensor_type(value.type)
    if found is None:
        raise ScheduleError(f"a value of type {value.type} is no tensor", "Such a module is not tiled.")
    return found


def maker(value: ir.Value[Any]) -> ir.Operation | None:
    """Give the operation that makes a value; None of an argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def integers(op: ir.Operation, name: str) -> list[int]:
    """Read an attribute that lists integers."""
    return [int(number) for number in ir.DenseI64ArrayAttr(op.attributes[name])]


def _the_axis(op: ir.Operation, axes: Axes) -> int:
    """Give the one dimension that all operands of the batch have it along."""
    found = {axis for axis in axes if axis is not None}
    if len(found) != 1:
        raise _mixes(op)
    return found.pop()


def _carry_at_the_same_place(op: ir.Operation, axes: Axes) -> Carried:
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
    places = {pair.index(axis) for pair, axis in zip(batching, axes, strict=True) if axis in pair}
    if places:
        place = places.pop()
        sides = [pair[place] for pair in batching]
        if places or any(axis not in (None, side) for axis, side in zip(axes, sides, strict=True)):
            raise _mixes(op)
        return place, sides
    side = 0 if axes[0] is not None else 1
    if axes[1 - side] is not None or axes[side] in contracted[side]:
        raise _mixes(op)
    bound = [{*batching[i], *contracted[i]} for i in range(2)]
    free = [[d for d in range(len(shape_of(op.operands[i]))) if d not in bound[i]] for i in range(2)]
    # A result has the batches first, then what is free of the left side, then of the right.
    place = len(batching[0]) + side * len(free[0])
    return place + free[side].index(axes[side] or 0), axes


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
