"""What a convolution is, without its layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planish.core import ScheduleError
from planish.hlo.ir import ir
from planish.hlo.ir.mlir import stablehlo
from planish.hlo.tiling.axes import integers, shape_of

Value = ir.Value[Any]


@dataclass(frozen=True)
class PlainConvolution:
    """A convolution.

    Args:
        image: what it reads.
        kernel: its weights.
        order: how the image's dimensions are put into the order batch, space, features.
        kernel_order: how the kernel's are put into the order space, inputs, outputs.
        back: how the result's dimensions are put from the order batch, space, features into its own.
        strides: in space.
        dilation: how far a kernel's elements are apart.
        padding: before the first and behind the last, for each dimension of space.
        groups: of features.
    """

    image: Value
    kernel: Value
    order: tuple[int, ...]
    kernel_order: tuple[int, ...]
    back: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    groups: int

    @property
    def depthwise(self) -> bool:
        """Whether each feature is convolved alone."""
        inputs, outputs = (shape_of(self.kernel)[axis] for axis in self.kernel_order[-2:])
        return inputs == 1 and self.groups == outputs == shape_of(self.image)[self.order[-1]]


def plain_convolution(op: ir.Operation) -> PlainConvolution:
    """Read a convolution; raises ScheduleError where it is none, or one that is not written otherwise."""
    if op.name != "stablehlo.convolution":
        raise ScheduleError(f"{op.name} is no convolution")
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    inner, outer = list(numbers.input_spatial_dimensions), list(numbers.output_spatial_dimensions)
    result = [numbers.output_batch_dimension, *outer, numbers.output_feature_dimension]
    image, kernel = op.operands
    found = PlainConvolution(
        image,
        kernel,
        (numbers.input_batch_dimension, *inner, numbers.input_feature_dimension),
        (
            *numbers.kernel_spatial_dimensions,
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ),
        tuple(result.index(axis) for axis in range(len(result))),
        _window(op, "window_strides", len(inner)),
        _window(op, "rhs_dilation", len(inner)),
        _padding(op, len(inner)),
        ir.IntegerAttr(op.attributes["feature_group_count"]).value,
    )
    turned = "window_reversal" in op.attributes and any(_flags(op.attributes["window_reversal"]))
    # An image whose elements are apart, or batches in groups, come from gradients: they have no such form.
    apart = any(step != 1 for step in _window(op, "lhs_dilation", len(inner)))
    cropped = any(size < 0 for pair in found.padding for size in pair)
    if turned or apart or cropped or ir.IntegerAttr(op.attributes["batch_group_count"]).value != 1:
        raise ScheduleError("such a convolution is not written otherwise", "It is one of a gradient.")
    return found


def _window(op: ir.Operation, name: str, dimensions: int) -> tuple[int, ...]:
    return tuple(integers(op, name)) if name in op.attributes else (1,) * dimensions


def _flags(attribute: Any) -> list[bool]:
    return [bool(flag) for flag in ir.DenseBoolArrayAttr(attribute)]


def _padding(op: ir.Operation, dimensions: int) -> tuple[tuple[int, int], ...]:
    if "padding" not in op.attributes:
        return ((0, 0),) * dimensions
    found = ir.DenseIntElementsAttr(op.attributes["padding"])
    return tuple((int(found[2 * axis]), int(found[2 * axis + 1])) for axis in range(dimensions))
