"""Tiles that are written out, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from planish.hlo.ir.mlir import stablehlo
from planish.hlo.tiling.batch_axes import FunctionBatch, Value
from planish.hlo.tiling.tile import Tile


def unrolled(batch: FunctionBatch, results: Sequence[Value], examples: int) -> list[Value]:
    """Compute all tiles at the current insertion point, and put their results together."""
    parts: list[list[Value]] = [[] for _ in results]
    for first in range(0, batch.size, examples):
        tile = Tile(batch, first, min(examples, batch.size - first)).computed()
        for place, value in enumerate(results):
            parts[place].append(tile.part(value, batch.axes[value]))
    return [
        stablehlo.ConcatenateOp(found, batch.axes[value]).result
        for found, value in zip(parts, results, strict=True)
    ]
