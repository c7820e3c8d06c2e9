"""What shape the result of an operation has, when its operands have become smaller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planish.core import ScheduleError
from planish.hlo.ir import ir
from planish.hlo.ir.mlir import stablehlo
from planish.hlo.tiling.axes import SAME_PLACE, integers, shape_of

Shape = tuple[int, ...]


def smaller_result(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    """Give the shape of an operation's result, and change its attributes where they name extents.

    Args:
        op: its operands are smaller already, its result is not.
        old: what shapes its operands had.

    Raises:
        ScheduleError: it is not known what the operation does with fewer pixels, or there are too few.
    """
    if op.name in SAME_PLACE:
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
    # Each pixel less takes the padding along that was put behind it.
    inside = integers(op, "interior_padding")
    return tuple(
        size - (before - now) * (1 + step) for (before, now, size), step in zip(pairs, inside, strict=True)
    )


def _transposed(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    del old
    return tuple(shape_of(op.operands[0])[axis] for axis in integers(op, "permutation"))


def _reduced(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    del old
    gone = integers(op, "dimensions")
    return tuple(size for axis, size in enumerate(shape_of(op.operands[0])) if axis not in gone)


def _joined(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    axis = ir.IntegerAttr(op.attributes["dimension"]).value
    shapes = [shape_of(value) for value in op.operands]
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(others) != 1 or any(now[axis] != was[axis] for now, was in zip(shapes, old, strict=True)):
        raise ScheduleError("what is joined has fewer pixels in part", "Such a module keeps its resolution.")
    return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])


def _convolved(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    result, now, kernel = list(shape_of(op.results[0])), *map(shape_of, op.operands)
    inner, outer = list(numbers.input_spatial_dimensions), list(numbers.output_spatial_dimensions)
    others = [axis for axis in range(len(now)) if axis not in inner]
    if kernel != old[1] or any(old[0][axis] != now[axis] for axis in others):
        raise ScheduleError("a convolution is given fewer pixels only", "Such a module keeps its resolution.")
    kernels, padding = list(numbers.kernel_spatial_dimensions), _padding(op)
    for place, (axis, to, of_kernel) in enumerate(zip(inner, outer, kernels, strict=True)):
        stride, step, apart = (_at(op, name, place) for name in _WINDOW)
        pixels = (now[axis] - 1) * step + 1 + sum(padding[2 * place : 2 * place + 2])
        result[to] = (pixels - ((kernel[of_kernel] - 1) * apart + 1)) // stride + 1
    if min(result) < 1:
        raise ScheduleError("too few pixels are left for a convolution", "Leave more.")
    return tuple(result)


_WINDOW = ("window_strides", "lhs_dilation", "rhs_dilation")


def _at(op: ir.Operation, name: str, place: int) -> int:
    """Read a number of a window, which is 1 where it is not given."""
    return integers(op, name)[place] if name in op.attributes else 1


def _padding(op: ir.Operation) -> list[int]:
    """List how many pixels are put before the first and behind the last, dimension by dimension."""
    if "padding" not in op.attributes:
        return [0] * 2 * len(shape_of(op.operands[0]))
    found = ir.DenseIntElementsAttr(op.attributes["padding"])
    return [int(found[place]) for place in range(len(found))]


def _multiplied(op: ir.Operation, old: Sequence[Shape]) -> Shape:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batching = [list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)]
    summed = [list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)]
    shapes = [shape_of(value) for value in op.operands]
    if any(shapes[i][axis] != old[i][axis] for i in range(2) for axis in summed[i]):
        raise ScheduleError("a product sums over pixels", "Such a module keeps its resolution.")
    free = [
        size
        for i in range(2)
        for axis, size in enumerate(shapes[i])
        if axis not in batching[i] and axis not in summed[i]
    ]
    return (*(shapes[0][axis] for axis in batching[0]), *free)


_RULES: Mapping[str, Callable[[Any, Sequence[Shape]], Shape]] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.slice": _sliced,
    "stablehlo.pad": _padded,
    "stablehlo.transpose": _transposed,
    "stablehlo.reduce": _reduced,
    "stablehlo.concatenate": _joined,
    "stablehlo.convolution": _convolved,
    "stablehlo.dot_general": _multiplied,
}
