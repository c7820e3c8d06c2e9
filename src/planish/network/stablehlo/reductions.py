"""Rules of translation: reductions and pooling of StableHLO as nodes of ONNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from planish.levels.hlo.ir.mlir import integers, ir, padding_of, window
from planish.network.ir import Shape
from planish.network.stablehlo.rules import Rule, as_wide, enumerated, refuse, result_type
from planish.network.stablehlo.writer import GraphWriter, Tensor

_REDUCTIONS = {
    "stablehlo.add": ("ReduceSum", 0.0),
    "stablehlo.multiply": ("ReduceProd", 1.0),
    "stablehlo.maximum": ("ReduceMax", -np.inf),
    "stablehlo.minimum": ("ReduceMin", np.inf),
    "stablehlo.or": ("ReduceMax", -np.inf),
    "stablehlo.and": ("ReduceMin", np.inf),
}
"""Operation that combines two values to ONNX's reduction, and the number that changes no value."""
_COMBINED = {"ReduceSum": "Add", "ReduceProd": "Mul", "ReduceMax": "Max", "ReduceMin": "Min"}
_PAIRS = "a reduction of two values other than argmax and argmin is not covered"


def body_of(op: ir.Operation) -> list[ir.Operation]:
    """Return the operations of an operation's body, of which the last returns its result."""
    return [each.operation for each in op.regions[0].blocks[0].operations]


def _reduction(op: ir.Operation) -> tuple[str, float]:
    """Return the reduction of ONNX that combines values as an operation does, and its neutral number."""
    body = body_of(op)
    if len(body) != 2 or body[0].name not in _REDUCTIONS or len(op.results) != 1:
        raise refuse(op, f"a body of {', '.join(each.name for each in body[:-1])} is not covered")
    return _REDUCTIONS[body[0].name]


def _with_start(w: GraphWriter, reduced: Tensor, start: Tensor, operator: str, neutral: float) -> Tensor:
    """Combine a reduction with the value that it starts with, unless that changes nothing."""
    if np.isinf(neutral) and not reduced.dtype.startswith("float"):
        limits = np.iinfo(reduced.dtype)
        neutral = limits.max if neutral > 0 else limits.min
    if w.known_scalar(start) == neutral:
        return reduced
    return w.elementwise(_COMBINED[operator], [reduced, as_wide(w, start, reduced.shape)])


def _reduce(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    dimensions = integers(op, "dimensions")
    if len(op.results) == 2:
        return _arg_extreme(w, op, operands, dimensions)
    operator, neutral = _reduction(op)
    # ONNX reduces numbers alone.
    kind = "int32" if operands[0].dtype == "bool" else operands[0].dtype
    value, start = (w.cast(each, kind) for each in operands)
    name, order = _reduced(w, operator, value, dimensions)
    shape, dtype = result_type(op)
    made = Tensor(name, shape, kind, order, tuple(shape[d] for d in order))
    return [w.cast(_with_start(w, made, start, operator, neutral), dtype)]


def _reduced(w: GraphWriter, operator: str, value: Tensor, dimensions: Sequence[int]) -> tuple[str, Shape]:
    """Write a reduction; return its name, and the order of its dimensions."""
    axes = sorted(value.axis(d) for d in dimensions)
    kept = [d for d in range(len(value.shape)) if d not in dimensions]
    order = tuple(kept.index(d) for d in value.order if d not in dimensions)
    dense = w.dense(value, value.order)
    if operator.startswith("Arg"):
        return w.emit(operator, [dense], axis=axes[0], keepdims=0), order
    return w.emit(operator, [dense, w.whole_numbers(axes)], keepdims=0) if axes else dense, order


def _arg_extreme(
    w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor], dimensions: Sequence[int]
) -> Sequence[Tensor]:
    """Write the largest or smallest value along a dimension, and its index, as JAX's argmax computes them."""
    value, index = operands[:2]
    tests = [each for each in body_of(op) if each.name == "stablehlo.compare"]
    direction = enumerated(tests[0].attributes["comparison_direction"]) if tests else ""
    known = w.known(index)
    if len(dimensions) != 1 or known is None or direction not in ("GT", "GE", "LT", "LE"):
        raise refuse(op, _PAIRS)
    (d,) = dimensions
    numbers = np.moveaxis(known, d, -1)
    if not np.array_equal(numbers, np.broadcast_to(np.arange(known.shape[d]), numbers.shape)):
        raise refuse(op, _PAIRS)
    word = "Max" if direction.startswith("G") else "Min"
    shape, dtype = result_type(op, 1)
    name, order = _reduced(w, f"Reduce{word}", value, dimensions)
    extreme = Tensor(name, shape, value.dtype, order, tuple(shape[d] for d in order))
    name, _ = _reduced(w, f"Arg{word}", value, dimensions)
    return [extreme, w.cast(replace(extreme, name=name, dtype="int64"), dtype)]


def _reduce_window(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    """Write pooling, or a cumulative sum."""
    value, start = operands
    operator, neutral = _reduction(op)
    rank, (shape, dtype) = len(value.shape), result_type(op)
    sizes, pads = integers(op, "window_dimensions"), padding_of(op, rank)
    strides, dilations = (window(op, f"window_{name}", rank) for name in ("strides", "dilations"))
    steps = list(zip(sizes, strides, dilations, pads, strict=True))
    windowed = [d for d, step in enumerate(steps) if step != (1, 1, 1, (0, 0))]
    if max(window(op, "base_dilations", rank), default=1) > 1 or operator == "ReduceProd":
        raise refuse(op, "products, and gaps between elements, are not covered")
    if operator == "ReduceSum" and w.known_scalar(start) != neutral:
        raise refuse(op, "sums of windows that start with another number than 0 are not covered")
    if operator == "ReduceSum" and len(windowed) == 1:
        (d,) = windowed
        far = value.shape[d] - 1
        if steps[d] in ((far + 1, 1, 1, (far, 0)), (far + 1, 1, 1, (0, far))):
            inputs = [w.dense(value, value.order), w.whole_numbers([value.axis(d)])]
            name = w.emit("CumSum", inputs, reverse=int(pads[d][0] == 0))
            return [replace(value, name=name, extents=value.full_extents())]
    if not 0 < len(windowed) <= 3 or min(min(each) for each in pads) < 0:
        raise refuse(op, "windows over more than 3 dimensions, and negative padding, are not covered")
    if operator == "ReduceSum" and max(dilations) > 1:
        raise refuse(op, "a sum over a window with gaps is not covered")
    outer = tuple(d for d in value.order if d not in windowed)
    inner = tuple(d for d in value.order if d in windowed)
    extents = tuple(value.shape[d] for d in (*outer, *inner))
    flat = (prod(extents[: max(0, len(outer) - 1)]), *(extents[len(outer) - 1 :] if outer else (1, *extents)))
    name = w.dense(value, (*outer, *inner))
    name = name if flat == extents else w.reshape(name, flat)
    name = _pool(w, operator, name, [steps[d] for d in inner], dtype)
    extents = tuple(shape[d] for d in (*outer, *inner))
    name = name if len(outer) == 2 else w.reshape(name, extents)
    return [_with_start(w, Tensor(name, shape, dtype, (*outer, *inner), extents), start, operator, neutral)]


def _pool(w: GraphWriter, operator: str, name: str, steps: Sequence[Any], dtype: str) -> str:
    """Write pooling of a tensor, whose first two dimensions have no windows.

    Args:
        w: the writer.
        operator: the reduction of each window.
        name: of the tensor.
        steps: the size, stride, dilation and padding of the window in each other dimension.
        dtype: of the elements.
    """
    attributes = {
        "kernel_shape": [size for size, *_ in steps],
        "strides": [stride for _, stride, *_ in steps],
        "pads": [pads[side] for side in (0, 1) for *_, pads in steps],
    }
    if operator == "ReduceSum":
        mean = w.emit("AveragePool", [name], count_include_pad=1, **attributes)
        return w.emit("Mul", [mean, w.weight(np.array(prod(attributes["kernel_shape"]), dtype))])
    turned = operator == "ReduceMin"
    name = w.emit("Neg", [name]) if turned else name
    name = w.emit("MaxPool", [name], dilations=[by for _, _, by, _ in steps], **attributes)
    return w.emit("Neg", [name]) if turned else name


REDUCTION_RULES: Mapping[str, Rule] = {"stablehlo.reduce": _reduce, "stablehlo.reduce_window": _reduce_window}
"""Rules of reductions."""
