"""Rules of translation: loops, sorting and scattering of StableHLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planish.levels.hlo.ir.mlir import integer, ir, stablehlo
from planish.network.onnx.control_flow import MOST_NODES
from planish.network.stablehlo.reductions import body_of
from planish.network.stablehlo.rules import Rule, enumerated, refuse
from planish.network.stablehlo.writer import GraphWriter, Tensor

Run = Callable[[ir.Block, Sequence[Tensor]], Sequence[Tensor]]
"""Writes the operations of a block on values; returns what it returns."""


def unroll(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor], run: Run) -> Sequence[Tensor]:
    """Write the iterations of a loop, one after another.

    Args:
        w: writes nodes.
        op: the loop; when it ends has to follow from constants, as with a counter.
        operands: what it starts with.
        run: writes the loop's condition and body.

    Raises:
        ProgramError: the number of iterations depends on data, or there are too many.
    """
    condition, body = (region.blocks[0] for region in op.regions)
    values, first = operands, len(w.nodes)
    for _ in range(MOST_NODES):
        (goes_on,) = run(condition, values)
        known = w.known_scalar(goes_on)
        if known is None:
            raise refuse(op, "a number of iterations that depends on data is not covered")
        if not known:
            return values
        values = run(body, values)
        if len(w.nodes) - first > MOST_NODES:
            break
    raise refuse(op, f"more than {MOST_NODES:,} nodes in all iterations are not covered")


# Sorting

_ASCENDING = {"LT": True, "LE": True, "GT": False, "GE": False}
_KEEPS_ORDER = ("stablehlo.compare", "stablehlo.constant", "stablehlo.select")
"""Operations by which JAX makes all NaN and both zeros equal before it compares."""


def _sort(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    """Write sorting by one of the operands, in the order of whose elements all are then taken."""
    key, ascending = _order(op)
    axis, shape = integer(op, "dimension"), operands[0].shape
    kind = operands[key].dtype
    values = w.cast(operands[key], kind if kind in _SORTED else "int64" if "int" in kind else "float32")
    inputs = [w.dense(values), w.whole_numbers(shape[axis : axis + 1])]
    made, indices = w.emit_several("TopK", inputs, 2, axis=axis, largest=int(not ascending))
    found = list[Tensor]()
    for index, each in enumerate(operands):
        if index == key:
            found.append(w.cast(w.plain(made, shape, values.dtype), kind))
        else:
            name = w.emit("GatherElements", [w.dense(each), indices], axis=axis)
            found.append(w.plain(name, shape, each.dtype))
    return found


_SORTED = ("float32", "float64", "int32", "int64")
"""Types that ONNX Runtime sorts."""


def _order(op: ir.Operation) -> tuple[int, bool]:
    """Return by which operand a sort compares, and whether the smallest element comes first."""
    arguments = list(op.regions[0].blocks[0].arguments)
    last = _maker(body_of(op)[-1].operands[0])
    if last is not None and last.name == "stablehlo.compare":
        direction = enumerated(last.attributes["comparison_direction"])
        pair = [_sources(side, arguments) for side in last.operands]
        key = min(pair[0] | pair[1]) // 2 if pair[0] | pair[1] else 0
        for sides, ascending in ((pair, True), (pair[::-1], False)):
            if sides == [{2 * key}, {2 * key + 1}] and direction in _ASCENDING:
                return key, _ASCENDING[direction] == ascending
    raise refuse(op, "only the order of one operand's elements is covered")


def _sources(value: ir.Value[Any], arguments: Sequence[ir.Value[Any]]) -> set[int]:
    """Return the arguments of a comparison that a value is made of; -1 stands for anything else."""
    if value in arguments:
        return {arguments.index(value)}
    maker = _maker(value)
    if maker is None or maker.name not in _KEEPS_ORDER:
        return {-1}
    return set[int]().union(*(_sources(each, arguments) for each in maker.operands))


def _maker(value: ir.Value[Any]) -> ir.Operation | None:
    """Return the operation whose result a value is; None for the argument of a block."""
    return value.owner.operation if isinstance(value, ir.OpResult) else None


# Scattering

_COMBINED: Mapping[str, str] = {
    "": "none",
    "stablehlo.add": "add",
    "stablehlo.multiply": "mul",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
}
"""Operation of a scatter's body to how ONNX combines elements."""


def _scatter(w: GraphWriter, op: ir.Operation, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    """Write scattering of whole slices, along dimensions that are moved to the front."""
    if len(operands) != 3:
        raise refuse(op, "several operands are not covered")
    value, indices, updates = operands
    numbers = stablehlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    along, last = list(numbers.scattered_dims_to_operand_dims), numbers.index_vector_dim
    if last == len(indices.shape):
        indices = w.with_shape(indices, (*indices.shape, 1))
    windows, rest = list(numbers.update_window_dims), [d for d in range(len(value.shape)) if d not in along]
    whole = [updates.shape[d] for d in windows] == [value.shape[d] for d in rest]
    plain = sorted(along) == list(numbers.inserted_window_dims) and last == len(indices.shape) - 1
    if not (whole and plain) or numbers.input_batching_dims:
        raise refuse(op, "only whole slices are covered")
    order = [*along, *rest]
    value = w.transposed(value, order)
    updates = w.transposed(updates, [*(d for d in range(len(updates.shape)) if d not in windows), *windows])
    inputs = [w.dense(value), w.dense(w.cast(indices, "int64")), w.dense(updates)]
    made = w.plain(w.emit("ScatterND", inputs, reduction=_combination(op)), value.shape, value.dtype)
    return [w.transposed(made, [order.index(d) for d in range(len(order))])]


def _combination(op: ir.Operation) -> str:
    *body, end = body_of(op)
    old, new = op.regions[0].blocks[0].arguments
    name = body[0].name if body else ""
    operands = list(body[0].operands) if body else []
    both = not body or (len(body) == 1 and operands in ([old, new], [new, old]))
    if name not in _COMBINED or not both or (not body and end.operands[0] != new):
        raise refuse(op, f"a body of {', '.join(each.name for each in body) or 'nothing'} is not covered")
    return _COMBINED[name]


FLOW_RULES: Mapping[str, Rule] = {"stablehlo.scatter": _scatter, "stablehlo.sort": _sort}
"""Rules of sorting and scattering; loops are unrolled by `unroll`."""
