"""The channels that a product sums over, everywhere in a function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from planish.core import ScheduleError
from planish.hlo.ir import ir
from planish.hlo.ir.mlir import stablehlo
from planish.hlo.tiling.axes import maker, shape_of
from planish.hlo.width.ties import Axis, Tie, Value, ties

READERS = ("stablehlo.dot_general", "stablehlo.convolution")
_FORMS = ("stablehlo.reshape", "stablehlo.transpose", "stablehlo.convert")


@dataclass(frozen=True)
class Channels:
    """Axes that are one.

    Args:
        size: how many channels.
        axes: all of them.
        weights: the argument, or constant, by which they are told to matter; with its axis.
    """

    size: int
    axes: frozenset[Axis]
    weights: Axis


def channels_of(reader: ir.Operation) -> Channels:
    """Find the channels that a product or a convolution sums over, and all that is tied to them.

    Args:
        reader: it reads a value, and weights which an argument or a constant holds.

    Raises:
        ScheduleError: it is no such operation, or the channels cannot be cut: something else depends on how
            many they are, or the function gives them, or takes them with its examples.
    """
    start = _summed(reader)
    every = _closed(start)
    values = {value for value, _ in every}
    if len(values) != len(every):
        raise ScheduleError("these channels lie along two axes of a value", "Keep them all.")
    return Channels(shape_of(start[0])[start[1]], every, _source(reader, every))


def _summed(reader: ir.Operation) -> Axis:
    if reader.name == "stablehlo.dot_general":
        numbers = stablehlo.DotDimensionNumbers(reader.attributes["dot_dimension_numbers"])
        if len(numbers.lhs_contracting_dimensions) == 1 and not list(numbers.lhs_batching_dimensions):
            return reader.operands[0], numbers.lhs_contracting_dimensions[0]
    if reader.name == "stablehlo.convolution":
        numbers = stablehlo.ConvDimensionNumbers(reader.attributes["dimension_numbers"])
        return reader.operands[0], numbers.input_feature_dimension
    raise ScheduleError(f"{reader.name} does not sum over channels", "Name a product or a convolution.")


def _closed(start: Axis) -> frozenset[Axis]:
    """Follow the ties from an axis; raises ScheduleError where one operation has none for it."""
    found, waiting = {start}, [start]
    while waiting:
        value, axis = waiting.pop()
        users = [use.owner.operation for use in value.uses]
        made = maker(value)
        for op in (*users, made) if made is not None else users:
            if op.parent is None or op.parent.name != "func.func":
                raise ScheduleError("these channels go into a loop, or a branch", "Keep them all.")
            for other in _tied(op, (value, axis)):
                if other not in found:
                    found.add(other)
                    waiting.append(other)
    return frozenset(found)


def _tied(op: ir.Operation, axis: Axis) -> list[Axis]:
    if op.name == "stablehlo.constant":
        return []
    with_it = list(filter(partial(_holds, axis), ties(op)))
    if not with_it:
        raise ScheduleError(f"{op.name} depends on how many channels there are", "Keep them all.")
    return [other for tie in with_it for other in tie]


def _holds(axis: Axis, tie: Tie) -> bool:
    return axis in tie


def _source(reader: ir.Operation, every: frozenset[Axis]) -> Axis:
    """Find the argument or constant that holds what a reader multiplies its channels by."""
    value: Value = reader.operands[1]
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name in _FORMS:
        value = value.owner.operation.operands[0]
    if isinstance(value.owner, ir.Block) or value.owner.operation.name == "stablehlo.constant":
        found = next((axis for axis in every if axis[0] == value), None)
        if found is not None:
            return found
    raise ScheduleError("the weights are computed", "Only those of an argument or a constant are cut.")
