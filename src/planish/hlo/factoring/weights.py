"""Constant weights of a product or a convolution, as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from planish.core import ScheduleError
from planish.hlo.ir import ir
from planish.hlo.ir.mlir import stablehlo
from planish.hlo.tiling.axes import integers, maker, type_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Moves = tuple[tuple[str, tuple[int, ...]], ...]
_RESHAPE, _TRANSPOSE = "stablehlo.reshape", "stablehlo.transpose"
LARGEST = 4_194_304
"""Numbers of weights: the decomposition of more takes many seconds."""
_FLOATS = ("f32", "f64")


@dataclass(frozen=True)
class Weights:
    """Weights as a matrix, of what is summed over by what is given.

    Args:
        place: which operand they are.
        summed: the dimensions that are summed over, of a convolution those of space and inputs.
        given: the other dimensions.
        shape: of the tensor.
        value: the constant.
        moves: how the tensor comes of it: the shapes of reshapes, and permutations, each by its name.
    """

    place: int
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

    def factors(self, rank: int) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
        """Give the nearest product of two matrices; (inputs, rank) and (rank, outputs)."""
        # The first singular vectors make the nearest matrix of a rank (Eckart and Young 1936).
        left, sizes, right = _decomposed(self)
        return left[:, :rank] * sizes[:rank], right[:rank]


def weights_of(op: ir.Operation) -> Weights:
    """Find the constant weights of an operation.

    Raises:
        ScheduleError: it is no product or plain convolution, its weights are no constant of floats, are too
            large, or it has several products side by side.
    """
    if op.name == "stablehlo.dot_general":
        return _of_product(op)
    if op.name == "stablehlo.convolution":
        return _of_convolution(op)
    raise ScheduleError(f"{op.name} has no weights", "Name a product or a convolution.")


def _of_product(op: ir.Operation) -> Weights:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    if list(numbers.lhs_batching_dimensions):
        raise ScheduleError(
            "several products side by side are not factored", "Name one with a single matrix."
        )
    place = 1 if _constant(op, 1) is not None else 0
    summed = (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)[place]
    return _checked(op, place, tuple(summed))


def _of_convolution(op: ir.Operation) -> Weights:
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    groups = [ir.IntegerAttr(op.attributes[f"{kind}_group_count"]).value for kind in ("feature", "batch")]
    if groups != [1, 1]:
        raise ScheduleError("a convolution of groups is not factored", "Name one without groups.")
    return _checked(op, 1, (*numbers.kernel_spatial_dimensions, numbers.kernel_input_feature_dimension))


def _checked(op: ir.Operation, place: int, summed: tuple[int, ...]) -> Weights:
    found, type_ = _constant(op, place), type_of(op.operands[place])
    if found is None:
        raise ScheduleError(
            f"the weights of this {op.name} are no constant",
            "Factors of others would be computed in each call.",
        )
    if type_.element not in _FLOATS or type_of(op.results[0]).element != type_.element:
        raise ScheduleError(f"weights of {type_.element} are not factored", f"Known: {', '.join(_FLOATS)}.")
    if prod(type_.shape) > LARGEST:
        raise ScheduleError(f"weights of {type_} are too large to be factored", f"At most {LARGEST} numbers.")
    given = tuple(axis for axis in range(len(type_.shape)) if axis not in summed)
    return Weights(place, summed, given, type_.shape, *found)


def _constant(op: ir.Operation, place: int) -> tuple[ir.Attribute, Moves] | None:
    """Find the constant that an operand is, or is another shape or order of, as frameworks write it."""
    value, moves = op.operands[place], list[tuple[str, tuple[int, ...]]]()
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
def _decomposed(
    weights: Weights,
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    import numpy as np  # here: to import it takes long

    values = np.array(weights.value, np.float64)
    for name, sizes in weights.moves:
        values = values.reshape(sizes) if name == _RESHAPE else values.transpose(sizes)
    values = values.reshape(weights.shape)
    matrix = values.transpose(*weights.summed, *weights.given).reshape(weights.inputs, weights.outputs)
    return np.linalg.svd(matrix, full_matrices=False)
