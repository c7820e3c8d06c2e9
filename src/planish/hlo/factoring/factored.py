"""Writing a product or a convolution with weights of a lower rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planish.hlo.factoring.weights import Weights
from planish.hlo.ir import UID, TensorType, context, ir, mlir_type
from planish.hlo.ir.mlir import stablehlo
from planish.hlo.lowering import Write
from planish.hlo.tiling.axes import type_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Value = ir.Value[Any]


def factored(write: Write, op: ir.Operation, weights: Weights, rank: int) -> Value:
    """Write an operation as two, and give their result.

    Args:
        write: writes an operation.
        op: a product or a convolution.
        weights: its own.
        rank: of the weights that are written.
    """
    return (_products if op.name == "stablehlo.dot_general" else _convolutions)(write, op, weights, rank)


def _products(write: Write, op: ir.Operation, weights: Weights, rank: int) -> Value:
    """Write products; the weights stand on the side where they stood."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    summed = (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions))
    other = op.operands[1 - weights.place]
    result, element = type_of(op.results[0]), type_of(op.results[0]).element
    left, right = weights.factors(rank)
    first = _constant(write, left, [*(weights.shape[axis] for axis in weights.summed), rank], element)
    shape = [size for axis, size in enumerate(type_of(other).shape) if axis not in summed[1 - weights.place]]
    rows, between = list(range(len(weights.summed))), len(shape)
    given = [weights.shape[axis] for axis in weights.given]
    if weights.place == 1:
        thin = _dot(write, TensorType((*shape, rank), element), other, first, summed[0], rows)
        last = _constant(write, right, [rank, *given], element)
        return _dot(write, result, thin, last, [between], [0])
    thin = _dot(write, TensorType((rank, *shape), element), first, other, rows, summed[1])
    last = _constant(write, right.T, [*given, rank], element)
    return _dot(write, result, last, thin, [len(given)], [0])


def _convolutions(write: Write, op: ir.Operation, weights: Weights, rank: int) -> Value:
    """Write the convolution with fewer outputs, then one of one pixel, all in the old layouts."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    result, kernel = type_of(op.results[0]), weights.shape
    features, inputs = numbers.output_feature_dimension, numbers.kernel_input_feature_dimension
    (outputs,) = weights.given
    element = result.element
    left, right = weights.factors(rank)
    order = (*weights.summed, outputs)
    wide = [rank if axis == outputs else size for axis, size in enumerate(kernel)]
    first = _constant(write, _laid_out(left, order, wide), wide, element)
    small = [{outputs: kernel[outputs], inputs: rank}.get(axis, 1) for axis in range(len(kernel))]
    last = _constant(write, _laid_out(right, (inputs, outputs), small), small, element)
    thin = TensorType(_with(result.shape, features, rank), element)
    kept = {name: op.attributes[name] for name in op.attributes if name != UID}
    between = write("convolution", thin, [op.operands[0], first], kept)
    attributes = {
        "dimension_numbers": _same_numbers(op),
        "feature_group_count": "1 : i64",
        "batch_group_count": "1 : i64",
    }
    return write("convolution", result, [between, last], attributes)


def _same_numbers(op: ir.Operation) -> str:
    """Give the layouts of a convolution that reads what another gives."""
    text = str(op.attributes["dimension_numbers"])
    kernel_and_result = text.partition("x[")[2]
    result = kernel_and_result.partition("->")[2].rstrip(">")
    return f"#stablehlo.conv<{result}x[{kernel_and_result}"


def _laid_out(matrix: NDArray[Any], order: Sequence[int], shape: Sequence[int]) -> NDArray[Any]:
    """Give a matrix whose rows are some dimensions, and its columns the last, as a tensor."""
    import numpy as np

    missing = [axis for axis in range(len(shape)) if axis not in order]
    tensor = matrix.reshape([*(shape[axis] for axis in order), *(1 for _ in missing)])
    return np.transpose(tensor, np.argsort([*order, *missing]))


def _with(shape: Sequence[int], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _dot(
    write: Write, type_: TensorType, left: Value, right: Value, one: Sequence[int], other: Sequence[int]
) -> Value:
    summed = f"lhs_contracting_dimensions = {list(one)}, rhs_contracting_dimensions = {list(other)}"
    return write("dot_general", type_, [left, right], {"dot_dimension_numbers": f"#stablehlo.dot<{summed}>"})


def _constant(write: Write, values: NDArray[Any], shape: Sequence[int], element: str) -> Value:
    import numpy as np

    type_ = TensorType(tuple(shape), element)
    array: Any = np.ascontiguousarray(values.reshape(shape), {"f32": np.float32, "f64": np.float64}[element])
    held = ir.DenseElementsAttr.get(array, type=mlir_type(type_), context=context())
    return write("constant", type_, [], {"value": held})
