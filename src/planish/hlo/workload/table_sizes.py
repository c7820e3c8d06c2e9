"""How large are the tables that a module looks things up in? Random token ids are to be in them."""

from __future__ import annotations

from planish.hlo.ir import ir, load, walk
from planish.hlo.ir.mlir_context import stablehlo
from planish.hlo.program import Program

WITHOUT = 100
"""Random numbers are below this where a module looks nothing up."""


def smallest_table(program: Program) -> int:
    """Give the length of the smallest table that a module gathers single rows from."""
    root = load(program.text)  # operations live no longer than this name does
    found = [length for op in walk(root) for length in _lengths(op)]
    return min(found, default=WITHOUT)


def _lengths(op: ir.Operation) -> list[int]:
    if op.name != "stablehlo.gather":
        return []
    numbers = stablehlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes = ir.DenseI64ArrayAttr(op.attributes["slice_sizes"])
    shape = ir.RankedTensorType(op.operands[0].type).shape
    return [shape[place] for place in numbers.start_index_map if sizes[place] == 1]
