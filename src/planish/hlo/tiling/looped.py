"""Tiles as a loop, which writes their results into tensors of the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planish.core import ScheduleError
from planish.hlo.ir import context, ir
from planish.hlo.ir.mlir import stablehlo
from planish.hlo.tiling.axes import shape_of, type_of
from planish.hlo.tiling.batch_axes import FunctionBatch, Value
from planish.hlo.tiling.tile import Tile, at, whole_number


def looped(batch: FunctionBatch, results: Sequence[Value], examples: int) -> Sequence[Value]:
    """Compute all tiles at the current insertion point; what is left over comes behind the loop.

    ::

        i, y = 0, 0;  while i < 100: y[i : i + 10] = f(x[i : i + 10]); i = i + 10
    """
    empty = [_zeros(value) for value in results]
    whole, rest = batch.size // examples * examples, batch.size % examples
    carried = [whole_number(0), *empty]
    loop = stablehlo.WhileOp([value.type for value in carried], carried)
    _condition(loop.regions[0], carried, whole)
    _body(loop.regions[1], carried, batch, results, examples)
    written = list(loop.results)[1:]
    if not rest:
        return written
    tile = Tile(batch, whole, rest).computed()
    return _written(batch, results, written, tile, whole_number(whole))


def _condition(region: ir.Region, carried: Sequence[Value], whole: int) -> None:
    block = _block(region, carried)
    with ir.InsertionPoint(block):
        direction = stablehlo.ComparisonDirectionAttr.get("LT")
        more = stablehlo.CompareOp(block.arguments[0], whole_number(whole), direction)
        stablehlo.ReturnOp([more.result])


def _body(
    region: ir.Region, carried: Sequence[Value], batch: FunctionBatch, results: Sequence[Value], examples: int
) -> None:
    block = _block(region, carried)
    first, *before = block.arguments
    with ir.InsertionPoint(block):
        tile = Tile(batch, first, examples).computed()
        written = _written(batch, results, before, tile, first)
        made: Any = stablehlo.AddOp(first, whole_number(examples)).result
        stablehlo.ReturnOp([made, *written])


def _block(region: ir.Region, carried: Sequence[Value]) -> ir.Block:
    unknown = ir.Location.unknown(region.owner.context)
    return region.blocks.append(*(value.type for value in carried), arg_locs=[unknown] * len(carried))


def _written(
    batch: FunctionBatch, results: Sequence[Value], before: Sequence[Value], tile: Tile, first: Value
) -> list[Value]:
    """Write a tile's results into tensors of the whole batch."""
    found: list[Value] = []
    for value, whole in zip(results, before, strict=True):
        axis = batch.axes[value]
        places = at(first, axis, len(shape_of(value)))
        found.append(stablehlo.DynamicUpdateSliceOp(whole, tile.part(value, axis), places).result)
    return found


def _zeros(value: Value) -> Value:
    """Make a tensor of a value's type; what is in it does not matter."""
    type_ = type_of(value)
    if not type_.plain:
        raise ScheduleError(f"a result of {type_} is not written by a loop", "Take tiles without one.")
    zero = "false" if type_.element == "i1" else "0.0" if "f" in type_.element else "0"
    return stablehlo.ConstantOp(ir.Attribute.parse(f"dense<{zero}> : {type_}", context())).result
