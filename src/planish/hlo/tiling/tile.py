"""The computation of one tile."""

from __future__ import annotations

from planish.hlo.ir import TensorType, ir, mlir_type
from planish.hlo.ir.mlir import UID, stablehlo
from planish.hlo.tiling.axes import Axes, integers, shape_of, type_of
from planish.hlo.tiling.batch_axes import FunctionBatch, Value


def at(first: Value, axis: int, dimensions: int) -> list[Value]:
    """Give the indices of what begins at `first` along one dimension, and at 0 along the others."""
    return [first if place == axis else whole_number(0) for place in range(dimensions)]


def whole_number(value: int) -> Value:
    """Make a constant scalar of 32 bits."""
    type_ = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    number = ir.IntegerAttr.get(type_.element_type, value)
    return stablehlo.ConstantOp(ir.DenseElementsAttr.get_splat(type_, number)).result


class Tile:
    """Some examples of a batch, as far as they are computed; it writes at the current insertion point.

    Args:
        batch: of which they are.
        first: the number of the first one; a scalar of 32 bits where it is known only when the module runs.
        examples: how many they are.
    """

    def __init__(self, batch: FunctionBatch, first: int | Value, examples: int) -> None:
        self._batch, self._first, self._examples = batch, first, examples
        self._parts: dict[tuple[Value, int], Value] = {}

    def computed(self) -> Tile:
        """Compute all that depends on the batch."""
        for op, axes in zip(self._batch.operations, self._batch.operands, strict=True):
            self._compute(op, axes)
        return self

    def _compute(self, op: ir.Operation, axes: Axes) -> None:
        """Compute an operation for these examples.

        Args:
            op: of the whole batch.
            axes: the dimensions along which its operands are cut.
        """
        parts = [v if axis is None else self.part(v, axis) for v, axis in zip(op.operands, axes, strict=True)]
        copy = op.clone().operation
        for place, part in enumerate(parts):
            copy.operands[place] = part
        for old, new in zip(op.results, copy.results, strict=True):
            axis = self._batch.axes[old]
            new.set_type(mlir_type(self._cut(type_of(old), axis)))
            self._parts[old, axis] = new
        # Its limits name the extent of the batch, all of which it keeps.
        if op.name == "stablehlo.slice":
            axis = self._batch.axes[op.results[0]]
            limits = integers(op, "limit_indices")
            limits[axis] = self._examples
            copy.attributes["limit_indices"] = ir.DenseI64ArrayAttr.get(limits)

    def part(self, value: Value, axis: int) -> Value:
        """Give a value's part for these examples, along a dimension."""
        if (value, axis) not in self._parts:
            self._parts[value, axis] = self._made(value, axis)
        return self._parts[value, axis]

    def _made(self, value: Value, axis: int) -> Value:
        """Cut what comes from outside; what is the same for all examples is made as large as it is needed."""
        owner, type_ = value.owner, self._cut(type_of(value), axis)
        if not isinstance(owner, ir.Block):
            op = owner.operation
            if op.name == "stablehlo.broadcast_in_dim" and _is_even(op, axis):
                copy = op.clone().operation
                copy.results[0].set_type(mlir_type(type_))
                # It is another operation: the name belongs to the one that stays.
                del copy.attributes[UID]
                return copy.results[0]
            splat = ir.DenseElementsAttr(op.attributes["value"]) if op.name == "stablehlo.constant" else None
            if splat is not None and splat.is_splat:
                shaped = ir.RankedTensorType(mlir_type(type_))
                return stablehlo.ConstantOp(
                    ir.DenseElementsAttr.get_splat(shaped, splat.get_splat_value())
                ).result
        return self._taken(value, axis, type_)

    def _taken(self, value: Value, axis: int, type_: TensorType) -> Value:
        """Take these examples out of a value."""
        if isinstance(self._first, int):
            starts, limits = [0] * len(type_.shape), list(type_.shape)
            starts[axis], limits[axis] = self._first, self._first + self._examples
            return stablehlo.SliceOp(value, starts, limits, [1] * len(starts)).result
        places = at(self._first, axis, len(type_.shape))
        return stablehlo.DynamicSliceOp(value, places, type_.shape).result

    def _cut(self, type_: TensorType, axis: int) -> TensorType:
        shape = (*type_.shape[:axis], self._examples, *type_.shape[axis + 1 :])
        return TensorType(shape, type_.element)


def _is_even(op: ir.Operation, axis: int) -> bool:
    """Whether a broadcast gives the same all along a dimension."""
    to = integers(op, "broadcast_dimensions")
    return axis not in to or shape_of(op.operands[0])[to.index(axis)] == 1
