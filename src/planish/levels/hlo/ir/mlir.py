"""Access to MLIR: the context of the process, tensor types, operation ids and printing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo

from planish.core import ScheduleError

Value = ir.Value[Any]


@cache
def context() -> ir.Context:
    """Return the context that all modules of this process live in; it is made once and kept."""
    made = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made.append_dialect_registry(registry)
    stablehlo.register_dialect(made)
    chlo.register_dialect(made)
    sdy.register_dialect(made)
    made.enable_multithreading(False)
    return made


FLOAT_BITS = {"f64": 64, "f32": 32, "bf16": 16, "f16": 16}
"""Widths of the floating-point types that modules compute with."""
_PLAIN = re.compile(r"(bf|f|u?i)\d+")

PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")
"""Operations that multiply values by weights and sum."""

ELEMENTWISE = frozenset(
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
"""Operations each of whose elements needs the operands' elements at the same position alone, or scalars."""


@dataclass(frozen=True)
class TensorType:
    """The shape and the element type of a value.

    Args:
        shape: extents, outermost first; empty for a scalar.
        element: as MLIR writes it: "f32", "i1", "ui8", "complex<f32>".
    """

    shape: tuple[int, ...]
    element: str

    @property
    def plain(self) -> bool:
        """True where the elements are floats or integers, which can be padded and converted."""
        return bool(_PLAIN.fullmatch(self.element))

    def with_extent(self, axis: int, extent: int) -> TensorType:
        """Return the type with another extent along an axis."""
        return TensorType((*self.shape[:axis], extent, *self.shape[axis + 1 :]), self.element)

    def __str__(self) -> str:
        return f"tensor<{'x'.join(map(str, (*self.shape, self.element)))}>"


@cache
def tensor_type(type_: ir.Type) -> TensorType | None:
    """Read an MLIR type; None for what is not a ranked tensor of static shape (tokens, tuples)."""
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return None
    return TensorType(tuple(type_.shape), str(type_.element_type))


@cache
def mlir_type(type_: TensorType) -> ir.Type:
    """Make the MLIR type."""
    return ir.Type.parse(str(type_), context())


UID = "planish.uid"


def uid_of(op: ir.Operation | ir.OpView) -> str:
    """Return an operation's id."""
    attribute = op.attributes[UID]
    assert isinstance(attribute, ir.StringAttr)
    return attribute.value


def set_uid(op: ir.Operation | ir.OpView, uid: str) -> None:
    """Set the id of an operation."""
    op.attributes[UID] = ir.StringAttr.get(uid, op.context)


def walk(root: ir.Operation | ir.OpView) -> list[ir.Operation]:
    """List an operation and all those inside it, each before its own."""
    found: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def functions(module: ir.Operation | ir.OpView) -> Iterator[tuple[str, ir.Operation]]:
    """List the functions of a module with their names."""
    for op in module.regions[0].blocks[0].operations:
        if op.operation.name == "func.func":
            name = op.attributes["sym_name"]
            assert isinstance(name, ir.StringAttr)
            yield name.value, op.operation


def number(function: ir.Operation | ir.OpView) -> None:
    """Number the operations inside a function: "0", "1", ... in the order of the text."""
    for index, op in enumerate(walk(function)[1:]):
        set_uid(op, str(index))


def strip_uids(root: ir.Operation | ir.OpView) -> None:
    """Take all ids away."""
    for op in walk(root):
        if UID in op.attributes:
            del op.attributes[UID]


def printed(root: ir.Operation | ir.OpView) -> str:
    """Print a verified module; attributes stand where they are used, with no aliases before it."""
    # To look for what deserves an alias takes an eighth of the time of printing.
    text = root.operation.get_asm(assume_verified=True, use_local_scope=True)
    assert isinstance(text, str)
    return f"{text}\n"


def shape_of(value: ir.Value[Any]) -> tuple[int, ...]:
    """Return a tensor's extents; raises ScheduleError where it is none."""
    return type_of(value).shape


def type_of(value: ir.Value[Any]) -> TensorType:
    """Return a tensor's type; raises ScheduleError where it is none."""
    found = tensor_type(value.type)
    if found is None:
        what = f"expected a tensor, got a value of type {value.type}"
        raise ScheduleError(what, "This edit needs tensors.")
    return found


def maker(value: ir.Value[Any]) -> ir.Operation | None:
    """Return the operation that makes a value; None of an argument."""
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def integers(op: ir.Operation, name: str) -> list[int]:
    """Read an attribute that lists integers."""
    return [int(number) for number in ir.DenseI64ArrayAttr(op.attributes[name])]


def integer(op: ir.Operation, name: str) -> int:
    """Read an attribute that is an integer."""
    return ir.IntegerAttr(op.attributes[name]).value


def window(op: ir.Operation, name: str, dimensions: int) -> list[int]:
    """Read an attribute of a window with a number for each dimension, which is 1 where it is not given."""
    return integers(op, name) if name in op.attributes else [1] * dimensions


def padding_of(op: ir.Operation, dimensions: int) -> list[tuple[int, int]]:
    """Read how much a window is padded before the first and after the last element of each dimension."""
    if "padding" not in op.attributes:
        return [(0, 0)] * dimensions
    found = ir.DenseIntElementsAttr(op.attributes["padding"])
    return [(int(found[2 * axis]), int(found[2 * axis + 1])) for axis in range(dimensions)]


def set_slice_limit(op: ir.Operation, axis: int, limit: int) -> None:
    """Set the end of a slice along a dimension."""
    limits = integers(op, "limit_indices")
    limits[axis] = limit
    op.attributes["limit_indices"] = ir.DenseI64ArrayAttr.get(limits, op.context)


def conv_numbers(op: ir.Operation) -> stablehlo.ConvDimensionNumbers:
    """Read which dimension of a convolution's operands and result is what."""
    return stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])


@dataclass(frozen=True)
class DotAxes:
    """Dimensions of a product's operands, each of the left one and of the right one.

    Args:
        batching: those of products side by side, which the result has first.
        summed: those that are summed over.
        free: the others, which the result has last, the left ones first.
    """

    batching: tuple[list[int], list[int]]
    summed: tuple[list[int], list[int]]
    free: tuple[list[int], list[int]]


def dot_axes(op: ir.Operation) -> DotAxes:
    """Read which dimension of a product's operands is what."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batching = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    summed = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    left, right = (
        [axis for axis in range(len(shape_of(value))) if axis not in (*batching[i], *summed[i])]
        for i, value in enumerate(op.operands)
    )
    return DotAxes(batching, summed, (left, right))


def with_shape(value: Value, shape: tuple[int, ...]) -> Value | None:
    """Make a constant or a broadcast again at the current insertion point, with other extents.

    Returns:
        A new value; None where the tensor is made otherwise, or differs along an axis whose extent changes.
    """
    op = maker(value)
    if op is None:
        return None
    type_ = mlir_type(TensorType(shape, type_of(value).element))
    if op.name == "stablehlo.broadcast_in_dim":
        sizes = dict(zip(integers(op, "broadcast_dimensions"), shape_of(op.operands[0]), strict=True))
        changed = [
            axis for axis, (old, new) in enumerate(zip(shape_of(value), shape, strict=True)) if old != new
        ]
        if all(sizes.get(axis, 1) == 1 for axis in changed):
            copy = op.clone().operation
            copy.results[0].set_type(type_)
            # It is another operation: the id belongs to the one that stays, which may itself be such a copy.
            strip_uids(copy)
            return copy.results[0]
    if op.name == "stablehlo.constant":
        elements = ir.DenseElementsAttr(op.attributes["value"])
        if elements.is_splat:
            splat = ir.DenseElementsAttr.get_splat(ir.RankedTensorType(type_), elements.get_splat_value())
            return stablehlo.ConstantOp(splat).result
    return None
