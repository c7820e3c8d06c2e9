"""Rewriting a function so that pictures in it have fewer pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any

from planish.core import ScheduleError
from planish.hlo.ir import TensorType, ir, mlir_type
from planish.hlo.ir.mlir import FLOAT_BITS, UID, stablehlo
from planish.hlo.shrinking.sizes import Shape, smaller_result
from planish.hlo.tiling.axes import SAME_PLACE, integers, shape_of, type_of

Value = ir.Value[Any]


@dataclass(frozen=True)
class Smaller:
    """Which part of a value's pictures is kept: pixels from the middle, each so many after the one before.

    Args:
        pixels: that are kept along each side.
        stride: 1: those in the middle; 2: each second one.
        mean: whether each is the mean of the square that begins with it and ends before the next.
    """

    pixels: int
    stride: int
    mean: bool = False

    @property
    def side(self) -> int:
        """Pixels along a side of what makes one."""
        return self.stride if self.mean else 1

    @property
    def reach(self) -> int:
        """Pixels along a side of what makes all."""
        return (self.pixels - 1) * self.stride + self.side


def pictured(shape: Shape) -> tuple[int, int] | None:
    """Tell along which two dimensions a value has pictures: beside each other, and as long."""
    if len(shape) == 4:
        return next(((a, a + 1) for a in (1, 2) if shape[a] == shape[a + 1] > 1), None)
    return None


def shrunk(block: ir.Block, value: Value, smaller: Smaller) -> None:
    """Let a value keep a part of its pictures, and all that follows fit that.

    What a sum over pixels gives is made as large as it was with all pixels, so that means stay means.

    Args:
        block: the body of a function, which is changed, to be verified and numbered afterwards.
        value: an argument of it, or the result of one of its operations.
        smaller: what is kept.

    Raises:
        ScheduleError: the value has no pictures or not so many pixels, or something after it needs them all.
    """
    users = [(use.owner, use.operand_number) for use in value.uses]
    kept = _part(block, value, smaller)
    old: dict[Value, Shape] = {kept: shape_of(value)}
    for user, place in users:
        user.operands[place] = kept
    for op in [view.operation for view in block.operations]:
        if not any(operand in old for operand in op.operands):
            continue
        if op.name == "func.return":
            raise ScheduleError("a result of the function has these pixels", "Its type stays what it is.")
        _follow(op, old)


def _part(block: ir.Block, value: Value, smaller: Smaller) -> Value:
    shape = shape_of(value)
    axes = pictured(shape)
    if axes is None:
        raise ScheduleError(f"a value of shape {shape} has no pictures", "Name one of four dimensions.")
    if smaller.pixels < 1 or smaller.stride < 1 or not smaller.reach <= shape[axes[0]]:
        what = f"{smaller.pixels} pixels, each {smaller.stride} after the other, are not in {shape[axes[0]]}"
        raise ScheduleError(what, "Take fewer, at least 1.")
    if smaller.mean and type_of(value).element not in FLOAT_BITS:
        raise ScheduleError("whole numbers have no mean of their type", "Take each second one as it is.")
    owner = value.owner
    place = (
        ir.InsertionPoint.at_block_begin(block)
        if isinstance(owner, ir.Block)
        else ir.InsertionPoint.after(owner.operation)
    )
    with place, ir.Location.unknown(block.owner.operation.context):
        parts = [_each(value, axes, smaller, at) for at in product(range(smaller.side), repeat=2)]
        return parts[0] if len(parts) == 1 else _times(reduce(stablehlo.add, parts), 1 / len(parts))


def _each(value: Value, axes: tuple[int, int], smaller: Smaller, at: tuple[int, ...]) -> Value:
    """Take pixels as far apart as the stride, so many below and beside the first."""
    shape = shape_of(value)
    starts, limits, strides = [0] * 4, list(shape), [1] * 4
    for axis, off in zip(axes, at, strict=True):
        starts[axis] = (shape[axis] - smaller.reach) // 2 + off
        limits[axis] = starts[axis] + (smaller.pixels - 1) * smaller.stride + 1
        strides[axis] = smaller.stride
    return stablehlo.SliceOp(value, starts, limits, strides).result


def _times(value: Value, factor: float) -> ir.OpResult[Any]:
    type_ = ir.RankedTensorType(value.type)
    number = ir.FloatAttr.get(type_.element_type, factor)
    constant = stablehlo.ConstantOp(ir.DenseElementsAttr.get_splat(type_, number))
    made: Callable[..., ir.OpResult[Any]] = stablehlo.multiply
    return made(value, constant.result)


def _follow(op: ir.Operation, old: dict[Value, Shape]) -> None:
    """Let an operation fit its operands, some of which are smaller than they were."""
    if len(op.results) != 1:
        raise ScheduleError(f"{op.name} has several results", "Such a module keeps its resolution.")
    before = [old.get(operand, shape_of(operand)) for operand in op.operands]
    result = op.results[0]
    was = shape_of(result)
    if op.name in SAME_PLACE:
        _fit_others(op, old)
    now = smaller_result(op, before)
    if now != was:
        result.set_type(mlir_type(TensorType(now, type_of(result).element)))
        old[result] = was
    if op.name == "stablehlo.reduce":
        _keep_sums(op, prod(before[0]) * prod(now), prod(shape_of(op.operands[0])) * prod(was))


def _fit_others(op: ir.Operation, old: dict[Value, Shape]) -> None:
    """Make what lies beside a smaller value, and is the same for all pixels, as small."""
    smaller = next(shape_of(operand) for operand in op.operands if operand in old)
    for place, operand in enumerate(op.operands):
        if operand not in old and shape_of(operand):
            op.operands[place] = _like(operand, smaller, op)


def _like(value: Value, shape: Shape, before: ir.Operation) -> Value:
    owner, was = value.owner, shape_of(value)
    type_ = mlir_type(TensorType(shape, type_of(value).element))
    changed = {axis for axis, (a, b) in enumerate(zip(was, shape, strict=True)) if a != b}
    with ir.InsertionPoint(before), ir.Location.unknown(before.context):
        if isinstance(owner, ir.Operation | ir.OpView):
            op = owner.operation
            if op.name == "stablehlo.broadcast_in_dim" and _even(op, changed):
                copy = op.clone().operation
                copy.results[0].set_type(type_)
                # It is another operation: the name belongs to the one that stays.
                del copy.attributes[UID]
                return copy.results[0]
            splat = ir.DenseElementsAttr(op.attributes["value"]) if op.name == "stablehlo.constant" else None
            if splat is not None and splat.is_splat:
                found = ir.DenseElementsAttr.get_splat(ir.RankedTensorType(type_), splat.get_splat_value())
                return stablehlo.ConstantOp(found).result
    raise ScheduleError("what lies beside these pixels differs from one to the other", "Keep them all.")


def _even(op: ir.Operation, changed: set[int]) -> bool:
    """Whether a broadcast gives the same along some dimensions."""
    sizes = dict(zip(integers(op, "broadcast_dimensions"), shape_of(op.operands[0]), strict=True))
    return all(sizes.get(axis, 1) == 1 for axis in changed)


def _keep_sums(op: ir.Operation, pixels: int, left: int) -> None:
    """Make a sum as large as it was: of `left` parts in `pixels` it has what is left."""
    if pixels == left or op.regions[0].blocks[0].operations[0].operation.name != "stablehlo.add":
        return
    result = op.results[0]
    if type_of(result).element not in FLOAT_BITS:
        raise ScheduleError("a sum of whole numbers over pixels cannot be made larger", "Keep them all.")
    with ir.InsertionPoint.after(op), ir.Location.unknown(op.context):
        whole = _times(result, pixels / left)
    result.replace_all_uses_except(whole, whole.owner.operation)
