"""Edit `Shrink`: images have fewer pixels from some value on, and all that follows is resized to fit.

There is a rule for each operation: what shape its result has when its operands have become smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from typing import Any, Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import Rewrite
from planish.levels.hlo.edits.editable import EditableModule, Subsampling
from planish.levels.hlo.ir.mlir import (
    ELEMENTWISE,
    FLOAT_BITS,
    PRODUCTS,
    TensorType,
    Value,
    conv_numbers,
    dot_axes,
    integer,
    integers,
    ir,
    maker,
    mlir_type,
    padding_of,
    shape_of,
    stablehlo,
    type_of,
    window,
    with_shape,
)

Shape = tuple[int, ...]


CUTS = (2, 4, 6, 8)
"""By how many pixels images are cropped."""

FEWEST = 4
"""Pixels along a side: smaller images are left alone."""


@dataclass(frozen=True)
class Shrink(Rewrite):
    """Crop or subsample the images of a value, or average their pixels; all that follows is resized to fit.

    It is done when all else is edited, before the batch is computed in tiles, wherever it stands in a patch;
    of several for a value the last counts. Weights stay as they are, and so do means over pixels. Where a
    result of the function would have fewer pixels, or what follows needs each at its position, it is illegal.

    ::

        b = convolution(a: 32x32) : 16x16   -- Shrink("a#0", 30) -->   b = convolution(a[1:31]) : 15x15

    Args:
        value: whose images they are.
        pixels: that are kept along each side.
        stride: how far they are apart; 1 crops, 2 takes each second one.
        mean: whether each becomes the mean of the square from it to the next, so that images are resized.
    """

    value: str
    pixels: int
    stride: int = 1
    mean: bool = False

    def apply(self, module: EditableModule) -> None:
        # Only looked up: a missing value is an error now, and not when all is edited.
        module.value(self.value)
        if self.pixels < 1 or self.stride < 1:
            raise ScheduleError(f"{self.pixels} pixels, {self.stride} apart, are none", "Take 1 or more.")
        module.subsamplings[self.value] = Subsampling(self.pixels, self.stride, self.mean)

    @classmethod
    def match(cls, module: EditableModule) -> dict[str, int]:
        """Find images that the function is given, or that convolutions and products read.

        Returns:
            The values by name, with their pixels along a side.
        """
        live = module.live()
        types = {f"arg{number}": type_ for number, type_ in enumerate(module.arguments[""])}
        for uid in module.blocks[""]:
            info = module.infos[uid]
            if uid in live and info.name in PRODUCTS:
                types[module.name(module.op(uid).operands[0])] = info.operands[0]
        found: dict[str, int] = {}
        for name, type_ in types.items():
            axes = spatial_axes(type_.shape) if type_ else None
            if type_ and axes and type_.shape[axes[0]] >= FEWEST:
                found[name] = type_.shape[axes[0]]
        return found

    @classmethod
    def enumerate(cls, module: EditableModule) -> list[Self]:
        """List crops, strides and means of the values that have images.

        Those that cut least come first. Not all of them are legal.
        """
        found: list[Self] = []
        for name, side in cls.match(module).items():
            found += [cls(name, side - cut) for cut in CUTS if side - cut >= max(FEWEST, side // 2)]
            found += [cls(name, side // 2, 2, mean) for mean in (False, True)]
        return found


def spatial_axes(shape: Shape) -> tuple[int, int] | None:
    """Find the two dimensions of a value's images: beside each other, and as long; None: there are none."""
    if len(shape) == 4:
        return next(((a, a + 1) for a in (1, 2) if shape[a] == shape[a + 1] > 1), None)
    return None


def shrink_value(block: ir.Block, value: Value, subsampling: Subsampling) -> None:
    """Subsample the images of a value of a function's body, and resize all that follows to fit.

    It is to be verified and numbered afterwards. What a sum over pixels gives is made as large as it was with
    all pixels, so that means stay means.

    Raises:
        ScheduleError: the value has no images or too few pixels, or something after it needs them all.
    """
    users = [(use.owner, use.operand_number) for use in value.uses]
    kept = _part(block, value, subsampling)
    old: dict[Value, Shape] = {kept: shape_of(value)}
    for user, position in users:
        user.operands[position] = kept
    for op in [view.operation for view in block.operations]:
        if not any(operand in old for operand in op.operands):
            continue
        if op.name == "func.return":
            raise ScheduleError("a result of the function has these pixels", "Its type stays what it is.")
        _follow(op, old)


def _part(block: ir.Block, value: Value, subsampling: Subsampling) -> Value:
    shape = shape_of(value)
    axes = spatial_axes(shape)
    if axes is None:
        raise ScheduleError(f"a value of shape {shape} has no images", "Name one of four dimensions.")
    if subsampling.pixels < 1 or subsampling.stride < 1 or not subsampling.receptive_extent <= shape[axes[0]]:
        kept = f"{subsampling.pixels} pixels, each {subsampling.stride} after the other"
        raise ScheduleError(f"{kept}, are not in {shape[axes[0]]}", "Take fewer, at least 1.")
    if subsampling.mean and type_of(value).element not in FLOAT_BITS:
        raise ScheduleError("whole numbers have no mean of their type", "Take each second one as it is.")
    op = maker(value)
    position = ir.InsertionPoint.after(op) if op else ir.InsertionPoint.at_block_begin(block)
    with position, ir.Location.unknown(block.owner.operation.context):
        parts = [
            _every_nth(value, axes, subsampling, at) for at in product(range(subsampling.window), repeat=2)
        ]
        return parts[0] if len(parts) == 1 else _times(reduce(stablehlo.add, parts), 1 / len(parts))


def _every_nth(value: Value, axes: tuple[int, int], subsampling: Subsampling, at: tuple[int, ...]) -> Value:
    """Take pixels that are a stride apart, this number below and right of the first."""
    shape = shape_of(value)
    starts, limits, strides = [0] * 4, list(shape), [1] * 4
    for axis, off in zip(axes, at, strict=True):
        starts[axis] = (shape[axis] - subsampling.receptive_extent) // 2 + off
        limits[axis] = starts[axis] + (subsampling.pixels - 1) * subsampling.stride + 1
        strides[axis] = subsampling.stride
    return stablehlo.SliceOp(value, starts, limits, strides).result


def _times(value: Value, factor: float) -> ir.OpResult[Any]:
    type_ = ir.RankedTensorType(value.type)
    number = ir.FloatAttr.get(type_.element_type, factor)
    constant = stablehlo.ConstantOp(ir.DenseElementsAttr.get_splat(type_, number))
    made: Callable[..., ir.OpResult[Any]] = stablehlo.multiply
    return made(value, constant.result)


def _follow(op: ir.Operation, old: dict[Value, Shape]) -> None:
    """Resize an operation to its operands, some of which have become smaller."""
    if len(op.results) != 1:
        raise ScheduleError(f"{op.name} has several results", "Such a module keeps its resolution.")
    before = [old.get(operand, shape_of(operand)) for operand in op.operands]
    result = op.results[0]
    was = shape_of(result)
    if op.name in ELEMENTWISE:
        # What lies beside a smaller value, and is the same for all pixels, becomes as small.
        smaller = next(shape_of(operand) for operand in op.operands if operand in old)
        for position, operand in enumerate(op.operands):
            if operand not in old and shape_of(operand):
                op.operands[position] = _like(operand, smaller, op)
    now = smaller_result(op, before)
    if now != was:
        result.set_type(mlir_type(TensorType(now, type_of(result).element)))
        old[result] = was
    if op.name == "stablehlo.reduce":
        _keep_sums(op, prod(before[0]) * prod(now), prod(shape_of(op.operands[0])) * prod(was))


def _like(value: Value, shape: Shape, before: ir.Operation) -> Value:
    with ir.InsertionPoint(before), ir.Location.unknown(before.context):
        made = with_shape(value, shape)
    if made is None:
        raise ScheduleError("what lies beside these pixels differs from one to the other", "Keep them all.")
    return made


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


def smaller_result(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    """Return the shape of an operation's result, and change its attributes where they name extents.

    Raises:
        ScheduleError: it is not known what the operation does with fewer pixels, or there are too few.
    """
    if op.name in ELEMENTWISE:
        return max((shape_of(value) for value in op.operands), key=len)
    rule = _RULES.get(op.name)
    if rule is None:
        raise ScheduleError(f"{op.name} cannot be given fewer pixels", "Such a module keeps its resolution.")
    return rule(op, old)


def _broadcast(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    result = list(shape_of(op.results[0]))
    to = integers(op, "broadcast_dimensions")
    for axis, before, now in zip(to, old[0], shape_of(op.operands[0]), strict=True):
        if before != now:
            result[axis] = now
    return tuple(result)


def _sliced(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    """Leave as much out at the end as before, or a bit less, where steps do not fit.

    So the nine slices of a convolution that is written as slices and products stay of one size, which is that
    of the convolution.
    """
    names = ("start_indices", "limit_indices", "strides")
    starts, limits, strides = (integers(op, name) for name in names)
    for axis, (before, now) in enumerate(zip(old[0], shape_of(op.operands[0]), strict=True)):
        last = limits[axis] - 1 - (limits[axis] - 1 - starts[axis]) % strides[axis]
        fewer = (before - now) - (before - now) % strides[axis]
        limits[axis] = min(limits[axis], last - fewer + 1) if before != now else limits[axis]
        if not starts[axis] < limits[axis] <= now:
            raise ScheduleError("too few pixels are left for a slice", "Leave more.")
    op.attributes["limit_indices"] = ir.DenseI64ArrayAttr.get(limits, op.context)
    return tuple(-(-(b - a) // s) for a, b, s in zip(starts, limits, strides, strict=True))


def _padded(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    pairs = zip(old[0], shape_of(op.operands[0]), shape_of(op.results[0]), strict=True)
    # Each pixel less takes the padding along that was put after it.
    inside = integers(op, "interior_padding")
    return tuple(
        size - (before - now) * (1 + step) for (before, now, size), step in zip(pairs, inside, strict=True)
    )


def _reduced(op: ir.Operation, _old: Sequence[Shape]) -> Shape:
    gone = integers(op, "dimensions")
    return tuple(size for axis, size in enumerate(shape_of(op.operands[0])) if axis not in gone)


def _joined(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    axis = integer(op, "dimension")
    shapes = [shape_of(value) for value in op.operands]
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(others) != 1 or any(now[axis] != was[axis] for now, was in zip(shapes, old, strict=True)):
        raise ScheduleError("what is joined has fewer pixels in part", "Such a module keeps its resolution.")
    return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])


def _convolved(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    numbers = conv_numbers(op)
    result, now, kernel = list(shape_of(op.results[0])), *map(shape_of, op.operands)
    inner, outer = list(numbers.input_spatial_dimensions), list(numbers.output_spatial_dimensions)
    others = [axis for axis in range(len(now)) if axis not in inner]
    if kernel != old[1] or any(old[0][axis] != now[axis] for axis in others):
        raise ScheduleError("a convolution is given fewer pixels only", "Such a module keeps its resolution.")
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    windows = zip(*(window(op, name, len(inner)) for name in names), padding_of(op, len(inner)), strict=True)
    axes = zip(inner, outer, numbers.kernel_spatial_dimensions, windows, strict=True)
    for axis, to, of_kernel, (stride, step, apart, padding) in axes:
        pixels = (now[axis] - 1) * step + 1 + sum(padding)
        result[to] = (pixels - ((kernel[of_kernel] - 1) * apart + 1)) // stride + 1
    if min(result) < 1:
        raise ScheduleError("too few pixels are left for a convolution", "Leave more.")
    return tuple(result)


def _multiplied(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    axes, shapes = dot_axes(op), [shape_of(value) for value in op.operands]
    if any(shapes[i][axis] != old[i][axis] for i in range(2) for axis in axes.summed[i]):
        raise ScheduleError("a product sums over pixels", "Such a module keeps its resolution.")
    free = [shapes[i][axis] for i in range(2) for axis in axes.free[i]]
    return (*(shapes[0][axis] for axis in axes.batching[0]), *free)


_RULES: Mapping[str, Callable[[Any, Sequence[Shape]], Shape]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.slice": _sliced,
    "stablehlo.pad": _padded,
    "stablehlo.transpose": lambda op, _: tuple(
        shape_of(op.operands[0])[axis] for axis in integers(op, "permutation")
    ),
    "stablehlo.reduce": _reduced,
    "stablehlo.concatenate": _joined,
    "stablehlo.convolution": _convolved,
    "stablehlo.dot_general": _multiplied,
}
