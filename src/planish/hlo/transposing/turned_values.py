"""Orders of dimensions, and values that are as easily made in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planish.hlo.ir import TensorType, ir

Order = tuple[int, ...]
"""Of a transpose: which dimension of the source each dimension of the result is."""

_FREE = ("stablehlo.broadcast_in_dim", "stablehlo.constant")


def composed(first: Order, second: Order) -> Order:
    """Give the order of two transposes, one after the other."""
    return tuple(first[axis] for axis in second)


def inverse(order: Order) -> Order:
    """Give the order that undoes one."""
    return tuple(order.index(axis) for axis in range(len(order)))


def placed(values: Sequence[int], order: Order) -> list[int]:
    """Give a number of each dimension of a transpose's result to the dimensions of its source."""
    return [values[place] for place in inverse(order)]


def source_type(type_: TensorType, order: Order) -> TensorType:
    """Give the type of what is transposed, of the type that this gives."""
    return TensorType(tuple(placed(type_.shape, order)), type_.element)


def is_free(value: ir.Value[Any]) -> bool:
    """Whether a value is one number, a constant or a broadcast: these are made in another order as easily."""
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name in _FREE
