"""Rules of translation: products and convolutions of StableHLO as nodes of ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from planish.levels.hlo.ir.mlir import conv_numbers, dot_axes, integer, ir, padding_of, window
from planish.network.stablehlo.rules import Rule, refuse, result_type, reversed_along
from planish.network.stablehlo.writer import GraphWriter, Tensor


def _dot_general(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    """Write a product as MatMul: dimensions that are summed, and those of the right operand, become one."""
    axes, (shape, dtype) = dot_axes(op), result_type(op)
    left, right = (w.cast(each, dtype) for each in operands)
    # As they are in memory, as far as they may be: the order of those of the left operand is free.
    rows = [d for d in left.order if d in axes.free[0]]
    a = w.dense(left, (*axes.batching[0], *rows, *axes.summed[0]))
    b = w.dense(right, (*axes.batching[1], *axes.summed[1], *axes.free[1]))
    batch = [left.shape[d] for d in axes.batching[0]]
    heights, widths = [left.shape[d] for d in rows], [right.shape[d] for d in axes.free[1]]
    depth = prod(left.shape[d] for d in axes.summed[0])
    # Without a batch, MatMul takes any number of rows' dimensions.
    tall = heights if heights and not batch else [prod(heights)]
    if len(axes.summed[0]) != 1 or tall != heights:
        a = w.reshape(a, (*batch, *tall, depth))
    if len(axes.summed[0]) != 1 or len(widths) != 1:
        b = w.reshape(b, (*batch, depth, prod(widths)))
    name = w.emit("MatMul", [a, b])
    if tall != heights or len(widths) != 1:
        name = w.reshape(name, (*batch, *heights, *widths))
    # The result has the batch first, then the rows in the order of the left operand's dimensions.
    first = len(batch) + len(heights)
    order = (
        *range(len(batch)),
        *(len(batch) + axes.free[0].index(d) for d in rows),
        *range(first, first + len(widths)),
    )
    return [Tensor(name, shape, dtype, order, tuple(shape[d] for d in order))]


def _convolution(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    numbers, (shape, dtype) = conv_numbers(op), result_type(op)
    image, kernel = (w.cast(each, dtype) for each in operands)
    rank = len(shape) - 2
    pads, groups = padding_of(op, rank), integer(op, "feature_group_count")
    strides, spread, dilations = (
        window(op, name, rank) for name in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    if integer(op, "batch_group_count") != 1:
        raise refuse(op, "groups of the batch are not covered")
    turned = list[int]()
    if "window_reversal" in op.attributes:
        flags = ir.DenseBoolArrayAttr(op.attributes["window_reversal"])
        turned = [d for d, flag in zip(numbers.kernel_spatial_dimensions, flags, strict=True) if flag]
    inputs = (
        numbers.input_batch_dimension, numbers.input_feature_dimension, *numbers.input_spatial_dimensions,
    )  # fmt: skip
    outs, ins = numbers.kernel_output_feature_dimension, numbers.kernel_input_feature_dimension
    taps = tuple(numbers.kernel_spatial_dimensions)
    order = (
        numbers.output_batch_dimension, numbers.output_feature_dimension, *numbers.output_spatial_dimensions,
    )  # fmt: skip
    kernel = reversed_along(w, kernel, turned)
    data = w.dense(image, inputs)
    attributes: dict[str, Any] = {"dilations": dilations, "group": groups}
    if max(spread, default=1) > 1:
        if max(strides) > 1 or groups > 1:
            raise refuse(op, "a transposed convolution with strides or groups is not covered")
        # Its window is read backwards, and it has what the padding lacks to all of its taps.
        reach = [(kernel.shape[d] - 1) * by for d, by in zip(taps, dilations, strict=True)]
        sides = [[far - each[side] for far, each in zip(reach, pads, strict=True)] for side in (0, 1)]
        if min(sides[0]) < 0:
            raise refuse(op, "a transposed convolution with padding beyond its window is not covered")
        weights = w.dense(reversed_along(w, kernel, taps), (ins, outs, *taps))
        more = [max(0, -each) for each in sides[1]]
        name = w.emit(
            "ConvTranspose", [data, weights], strides=spread, output_padding=more,
            pads=[*sides[0], *(max(0, each) for each in sides[1])], **attributes,
        )  # fmt: skip
    else:
        if min((min(each) for each in pads), default=0) < 0:
            raise refuse(op, "negative padding is not covered")
        weights = w.dense(kernel, (outs, ins, *taps))
        sides = [each[side] for side in (0, 1) for each in pads]
        name = w.emit("Conv", [data, weights], strides=strides, pads=sides, **attributes)
    return [Tensor(name, shape, dtype, order, tuple(shape[d] for d in order))]


PRODUCT_RULES: Mapping[str, Rule] = {
    "stablehlo.dot_general": _dot_general,
    "stablehlo.convolution": _convolution,
}
"""Rules of products."""
