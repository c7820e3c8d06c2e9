"""Finding a function's batch: examples of its inputs that never meet on their way to its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from planish.core import ScheduleError
from planish.hlo.ir import ir, tensor_type, walk
from planish.hlo.tiling.axes import Axes, carried, shape_of

Value = ir.Value[Any]

_HEAVY = ("stablehlo.convolution", "stablehlo.dot_general")


@dataclass(frozen=True)
class FunctionBatch:
    """A function's batch.

    Args:
        size: how many examples.
        axes: the values of the batch, with the dimension that it lies along.
        operations: those that make them, in order.
        operands: of each, the dimensions along which its operands are cut.
    """

    size: int
    axes: dict[Value, int]
    operations: Sequence[ir.Operation]
    operands: Sequence[Axes]


def batch_of(block: ir.Block) -> FunctionBatch:
    """Find the batch of a function.

    It lies along the first dimension of one input or of several. What is tried first is as long as the first
    result, and is all inputs of that length. Where a function has convolutions or products, one of them reads
    the batch: the moments of an optimiser have numbers that never meet, too, and are none.

    Args:
        block: the function's body.

    Raises:
        ScheduleError: examples meet, as in the gradient of a training step, or there is no batch.
    """
    why: ScheduleError | None = None
    for arguments in _possible(block):
        try:
            return _worth(block, _followed(block, arguments))
        except ScheduleError as error:
            why = why or error
    raise why or ScheduleError("the function has no batch", "Its inputs need a first dimension in common.")


def _possible(block: ir.Block) -> Iterator[Sequence[Value]]:
    lengths: dict[int, list[Value]] = {}
    for argument in block.arguments:
        type_ = tensor_type(argument.type)
        if type_ is not None and type_.shape and type_.shape[0] > 1:
            lengths.setdefault(type_.shape[0], []).append(argument)
    result = tensor_type(_end(block).operands[0].type) if len(_end(block).operands) else None
    wanted = result.shape[0] if result and result.shape else 0
    for _, found in sorted(lengths.items(), key=lambda item: item[0] != wanted):
        yield found
        if len(found) > 1:
            yield from ([argument] for argument in found)


def _followed(block: ir.Block, arguments: Sequence[Value]) -> FunctionBatch:
    """Follow some inputs through the function."""
    axes = dict.fromkeys(arguments, 0)
    batch = FunctionBatch(shape_of(arguments[0])[0], axes, operations := [], operands := list[Axes]())
    for op in map(_operation, list(block.operations)[:-1]):
        given = [axes.get(operand) for operand in op.operands]
        if any(value in axes for inner in walk(op)[1:] for value in inner.operands):
            raise ScheduleError(f"a region of {op.name} uses the batch", "Such a module is not tiled.")
        if all(axis is None for axis in given):
            continue
        result, wanted = carried(op, given)
        if any(shape_of(value)[result] != batch.size for value in op.results):
            raise ScheduleError(f"{op.name} changes the batch", "Such a module is not tiled.")
        operations.append(op)
        operands.append(wanted)
        axes.update(dict.fromkeys(op.results, result))
    if not any(value in axes for value in _end(block).operands):
        raise ScheduleError("no result depends on the batch", "Such a module is not tiled.")
    return batch


def _worth(block: ir.Block, batch: FunctionBatch) -> FunctionBatch:
    """Give a batch that the most work is done for; raises ScheduleError where it is not."""
    heavy = any(inner.name in _HEAVY for op in block.operations for inner in walk(op.operation))
    if heavy and not any(op.name in _HEAVY for op in batch.operations):
        raise ScheduleError("no convolution or product reads the batch", "Such a module is not tiled.")
    return batch


def _operation(op: ir.OpView | ir.Operation) -> ir.Operation:
    return op.operation


def _end(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation
