"""Edit `Factor`: constant weights become the product of two smaller matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import VariantRewrite, where_legal
from planish.levels.hlo.edits.editable import EditableModule, OpBuilder
from planish.levels.hlo.ir.mlir import (
    PRODUCTS,
    UID,
    TensorType,
    Value,
    context,
    conv_numbers,
    dot_axes,
    integer,
    integers,
    ir,
    maker,
    mlir_type,
    type_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARES = (3 / 4, 1 / 2, 1 / 4)
"""Of the largest rank that saves anything, the mildest first."""


@dataclass(frozen=True)
class Factor(VariantRewrite):
    """Factor the weights of a product or a convolution into two smaller ones of a lower rank.

    They come from the singular value decomposition of the weights, which are a constant, as a matrix of what
    is summed over by what is given: of all matrices of this rank theirs is nearest. A convolution gives
    `rank` channels first, and a convolution of one pixel makes the old channels of them.

    ::

        y = x @ w: 64x64   -- Factor("y", 16) -->   y = (x @ u: 64x16) @ v: 16x64

    Args:
        op: the product or convolution.
        rank: of the weights; 1 or more, and so few that it saves multiplications.
    """

    op: str
    rank: int

    def apply(self, module: EditableModule) -> None:
        module.require_target(self.op)
        weights = weights_of(module.op(self.op))
        if not 0 < self.rank <= weights.useful:
            sizes = f"{weights.inputs} x {weights.outputs}"
            what = f"weights of {sizes} cannot have rank {self.rank}"
            raise ScheduleError(what, f"From 1 to {weights.useful} it saves something.")
        op, build = module.op(self.op), OpBuilder(module, self.op, self.id_prefix)
        factored = _products if op.name == "stablehlo.dot_general" else _convolutions
        module.replace(self.op, [factored(build, op, weights, self.rank)])

    @classmethod
    def match(cls, module: EditableModule) -> dict[str, int]:
        """Find what may be factored, of what the results need, with the largest rank that saves anything."""
        found = where_legal(module.targets(*PRODUCTS), lambda uid: weights_of(module.op(uid)).useful)
        return {uid: useful for uid, useful in found.items() if useful}

    @classmethod
    def variants(cls, uid: str, found: int) -> list[Self]:
        """List edits that take a share of a rank, the mildest first."""
        ranks = dict.fromkeys(int(found * share) for share in SHARES)
        return [cls(uid, rank) for rank in ranks if rank]


def _products(build: OpBuilder, op: ir.Operation, weights: Weights, rank: int) -> Value:
    """Write products; the weights stand on the side where they stood."""
    axes, other = dot_axes(op), op.operands[1 - weights.position]
    result, element = type_of(op.results[0]), type_of(op.results[0]).element
    left, right = weights.factors(rank)
    first = _constant(build, left, [*(weights.shape[axis] for axis in weights.summed), rank], element)
    shape = [type_of(other).shape[axis] for axis in axes.free[1 - weights.position]]
    rows, between = list(range(len(weights.summed))), len(shape)
    given = [weights.shape[axis] for axis in weights.given]
    if weights.position == 1:
        thin = _dot(build, TensorType((*shape, rank), element), other, first, axes.summed[0], rows)
        last = _constant(build, right, [rank, *given], element)
        return _dot(build, result, thin, last, [between], [0])
    thin = _dot(build, TensorType((rank, *shape), element), first, other, rows, axes.summed[1])
    last = _constant(build, right.T, [*given, rank], element)
    return _dot(build, result, last, thin, [len(given)], [0])


def _convolutions(build: OpBuilder, op: ir.Operation, weights: Weights, rank: int) -> Value:
    """Write the convolution with fewer outputs, then one of one pixel, all in the old layouts."""
    numbers = conv_numbers(op)
    result, kernel = type_of(op.results[0]), weights.shape
    features, inputs = numbers.output_feature_dimension, numbers.kernel_input_feature_dimension
    (outputs,) = weights.given
    element = result.element
    left, right = weights.factors(rank)
    order = (*weights.summed, outputs)
    wide = [rank if axis == outputs else size for axis, size in enumerate(kernel)]
    first = _constant(build, _laid_out(left, order, wide), wide, element)
    small = [{outputs: kernel[outputs], inputs: rank}.get(axis, 1) for axis in range(len(kernel))]
    last = _constant(build, _laid_out(right, (inputs, outputs), small), small, element)
    thin = result.with_extent(features, rank)
    kept = {name: op.attributes[name] for name in op.attributes if name != UID}
    between = build("convolution", thin, [op.operands[0], first], kept)
    attributes = {
        "dimension_numbers": _same_numbers(op),
        "feature_group_count": "1 : i64",
        "batch_group_count": "1 : i64",
    }
    return build("convolution", result, [between, last], attributes)


def _same_numbers(op: ir.Operation) -> str:
    """Return the layouts of a convolution that reads what another gives."""
    kernel_and_result = str(op.attributes["dimension_numbers"]).partition("x[")[2]
    result = kernel_and_result.partition("->")[2].rstrip(">")
    return f"#stablehlo.conv<{result}x[{kernel_and_result}"


def _laid_out(matrix: NDArray[Any], order: Sequence[int], shape: Sequence[int]) -> NDArray[Any]:
    """Return a matrix whose rows are some dimensions, and its columns the last, as a tensor."""
    import numpy as np

    missing = [axis for axis in range(len(shape)) if axis not in order]
    tensor = matrix.reshape([*(shape[axis] for axis in order), *(1 for _ in missing)])
    return np.transpose(tensor, np.argsort([*order, *missing]))


def _dot(
    build: OpBuilder, type_: TensorType, left: Value, right: Value, one: Sequence[int], other: Sequence[int]
) -> Value:
    summed = f"lhs_contracting_dimensions = {list(one)}, rhs_contracting_dimensions = {list(other)}"
    return build("dot_general", type_, [left, right], {"dot_dimension_numbers": f"#stablehlo.dot<{summed}>"})


def _constant(build: OpBuilder, values: NDArray[Any], shape: Sequence[int], element: str) -> Value:
    import numpy as np

    type_ = TensorType(tuple(shape), element)
    array: Any = np.ascontiguousarray(values.reshape(shape), {"f32": np.float32, "f64": np.float64}[element])
    held = ir.DenseElementsAttr.get(array, type=mlir_type(type_), context=context())
    return build("constant", type_, [], {"value": held})


Moves = tuple[tuple[str, tuple[int, ...]], ...]
_RESHAPE, _TRANSPOSE = "stablehlo.reshape", "stablehlo.transpose"
LARGEST = 4_194_304
"""Numbers of weights: the decomposition of more takes many seconds."""
_FLOATS = ("f32", "f64")


@dataclass(frozen=True)
class Weights:
    """Constant weights as a matrix: contracted dimensions by free dimensions.

    Args:
        position: which operand they are.
        summed: the dimensions that are summed over, of a convolution those of space and inputs.
        given: the other dimensions.
        shape: of the tensor.
        value: the constant.
        moves: how the tensor comes of it: the shapes of reshapes, and permutations, each by its name.
    """

    position: int
    summed: tuple[int, ...]
    given: tuple[int, ...]
    shape: tuple[int, ...]
    value: ir.Attribute
    moves: Moves = ()

    @property
    def inputs(self) -> int:
        """Rows of the matrix."""
        return prod(self.shape[axis] for axis in self.summed)

    @property
    def outputs(self) -> int:
        """Columns of the matrix."""
        return prod(self.shape[axis] for axis in self.given)

    @property
    def useful(self) -> int:
        """The largest rank with which two products take fewer multiplications than one; 0: none."""
        return max(0, (self.inputs * self.outputs - 1) // (self.inputs + self.outputs))

    def factors(self, rank: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the nearest product of two matrices; (inputs, rank) and (rank, outputs)."""
        # The first singular vectors make the nearest matrix of a rank (Eckart and Young 1936).
        left, sizes, right = _decomposed(self)
        return left[:, :rank] * sizes[:rank], right[:rank]


def weights_of(op: ir.Operation) -> Weights:
    """Find the constant weights of an operation.

    Raises:
        ScheduleError: it is not a product or plain convolution, its weights are not a constant of floats, are
            too large, or it has several products side by side.
    """
    if op.name == "stablehlo.dot_general":
        axes = dot_axes(op)
        if axes.batching[0]:
            what = "several products side by side are not factored"
            raise ScheduleError(what, "Name one with a single matrix.")
        position = 1 if _source(op, 1) is not None else 0
        return _checked(op, position, tuple(axes.summed[position]))
    if op.name == "stablehlo.convolution":
        if integer(op, "feature_group_count") != 1 or integer(op, "batch_group_count") != 1:
            raise ScheduleError("a convolution of groups is not factored", "Name one without groups.")
        numbers = conv_numbers(op)
        return _checked(op, 1, (*numbers.kernel_spatial_dimensions, numbers.kernel_input_feature_dimension))
    raise ScheduleError(f"{op.name} has no weights", "Name a product or a convolution.")


def _checked(op: ir.Operation, position: int, summed: tuple[int, ...]) -> Weights:
    found, type_ = _source(op, position), type_of(op.operands[position])
    if found is None:
        what = f"the weights of this {op.name} are not constant"
        raise ScheduleError(what, "Factors of others would be computed in each call.")
    if type_.element not in _FLOATS or type_of(op.results[0]).element != type_.element:
        raise ScheduleError(f"weights of {type_.element} are not factored", f"Known: {', '.join(_FLOATS)}.")
    if prod(type_.shape) > LARGEST:
        raise ScheduleError(f"weights of {type_} are too large to be factored", f"At most {LARGEST} numbers.")
    given = tuple(axis for axis in range(len(type_.shape)) if axis not in summed)
    return Weights(position, summed, given, type_.shape, *found)


def _source(op: ir.Operation, position: int) -> tuple[ir.Attribute, Moves] | None:
    """Find the constant that an operand is, or is another shape or order of, as frameworks write it."""
    value, moves = op.operands[position], list[tuple[str, tuple[int, ...]]]()
    while (made := maker(value)) is not None:
        if made.name == "stablehlo.constant":
            found = made.attributes["value"]
            return (found, tuple(moves[::-1])) if isinstance(found, ir.DenseElementsAttr) else None
        if made.name == _RESHAPE:
            moves.append((_RESHAPE, type_of(value).shape))
        elif made.name == _TRANSPOSE:
            moves.append((_TRANSPOSE, tuple(integers(made, "permutation"))))
        else:
            return None
        value = made.operands[0]
    return None


@lru_cache(maxsize=64)
def _decomposed(weights: Weights) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    import numpy as np  # here: to import it takes long

    values = np.array(weights.value, np.float64)
    for name, sizes in weights.moves:
        values = values.reshape(sizes) if name == _RESHAPE else values.transpose(sizes)
    values = values.reshape(weights.shape)
    matrix = values.transpose(*weights.summed, *weights.given).reshape(weights.inputs, weights.outputs)
    return np.linalg.svd(matrix, full_matrices=False)
