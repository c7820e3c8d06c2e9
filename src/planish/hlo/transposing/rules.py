"""How operations are done on what is to be transposed, so that their results are transposed instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from planish.hlo.ir import ir
from planish.hlo.ir.mlir import stablehlo
from planish.hlo.tiling.axes import SAME_PLACE, integers, shape_of
from planish.hlo.transposing.turned_values import Order, is_free, placed

Orders = Sequence[Order | None]
"""Of an operation's operands: how their sources are transposed; None for what is no transpose."""


@dataclass(frozen=True)
class Turned:
    """An operation on the sources of its operands.

    Args:
        order: how its results are transposed to be what they were; sorted where they are that already.
        attributes: those that change: integers, or as MLIR writes them.
        others: how the operands that are no transposes are turned to fit; empty where they stay.
    """

    order: Order
    attributes: Mapping[str, str | Sequence[int]] = field(default_factory=dict[str, str | Sequence[int]])
    others: Order = ()


def turned(op: ir.Operation, orders: Orders) -> Turned | None:
    """Tell how an operation is done on the sources; None where no rule says so."""
    rule = _same_place if op.name in SAME_PLACE else _RULES.get(op.name)
    return rule(op, orders) if rule else None


def _common(op: ir.Operation, orders: Orders) -> Order | None:
    """Give the one order of all operands but scalars and what is free."""
    found = {order for order in orders if order is not None}
    pairs = zip(op.operands, orders, strict=True)
    others = [value for value, order in pairs if order is None and shape_of(value)]
    return found.pop() if len(found) == 1 and all(map(is_free, others)) else None


def _same_place(op: ir.Operation, orders: Orders) -> Turned | None:
    order = _common(op, orders)
    return Turned(order, others=order) if order else None


def _each_axis(*names: str) -> Callable[[ir.Operation, Orders], Turned | None]:
    """Make a rule for operations whose attributes have a number for each dimension."""

    def rule(op: ir.Operation, orders: Orders) -> Turned | None:
        order = _common(op, orders)
        given = [name for name in names if name in op.attributes]
        if order is None:
            return None
        return Turned(order, {name: placed(integers(op, name), order) for name in given}, order)

    return rule


def _windows(op: ir.Operation, orders: Orders) -> Turned | None:
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    found = _each_axis(*names)(op, orders)
    if found is None or "padding" not in op.attributes:
        return found
    sizes = [int(size) for size in ir.DenseIntElementsAttr(op.attributes["padding"])]
    pairs = [list(pair) for pair in zip(sizes[::2], sizes[1::2], strict=True)]
    moved = [pairs[place] for place in placed(range(len(pairs)), found.order)]
    padding = f"dense<{moved}> : tensor<{len(moved)}x2xi64>"
    return Turned(found.order, {**found.attributes, "padding": padding}, found.order)


def _concatenated(op: ir.Operation, orders: Orders) -> Turned | None:
    order = _common(op, orders)
    dimension = ir.IntegerAttr(op.attributes["dimension"]).value
    return Turned(order, {"dimension": f"{order[dimension]} : i64"}, order) if order else None


def _reversed(op: ir.Operation, orders: Orders) -> Turned | None:
    order = _common(op, orders)
    if order is None:
        return None
    return Turned(order, {"dimensions": [order[axis] for axis in integers(op, "dimensions")]}, order)


def _reduced(op: ir.Operation, orders: Orders) -> Turned | None:
    order = _common(op, orders)
    if order is None:
        return None
    gone = integers(op, "dimensions")
    kept = [order[axis] for axis in range(len(order)) if axis not in gone]
    place = {axis: number for number, axis in enumerate(sorted(kept))}
    dimensions = sorted(order[axis] for axis in gone)
    return Turned(tuple(place[axis] for axis in kept), {"dimensions": dimensions}, order)


def _broadcast(op: ir.Operation, orders: Orders) -> Turned | None:
    """A broadcast puts dimensions where it likes."""
    (order,) = orders
    to = integers(op, "broadcast_dimensions")
    result = tuple(range(len(shape_of(op.results[0]))))
    return Turned(result, {"broadcast_dimensions": placed(to, order)}) if order else None


def _reshaped(op: ir.Operation, orders: Orders) -> Turned | None:
    """A reshape takes no notice of where dimensions of one element are."""
    (order,) = orders
    shape = shape_of(op.operands[0])
    long = [axis for axis, size in zip(order or (), shape, strict=False) if size != 1]
    return Turned(tuple(range(len(shape_of(op.results[0]))))) if order and long == sorted(long) else None


def _multiplied(op: ir.Operation, orders: Orders) -> Turned | None:
    """A product names the dimensions that it sums over; those that are free stay in order."""
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batching = (numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions)
    summed = (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)
    text, place = list[str](), list(range(len(batching[0])))
    for side, name in enumerate(("lhs", "rhs")):
        rank = len(shape_of(op.operands[side]))
        order = orders[side] or tuple(range(rank))
        text.append(f"{name}_batching_dimensions = {[order[axis] for axis in batching[side]]}")
        text.append(f"{name}_contracting_dimensions = {[order[axis] for axis in summed[side]]}")
        free = [order[axis] for axis in range(rank) if axis not in {*batching[side], *summed[side]}]
        place += [len(place) + sorted(free).index(axis) for axis in free]
    return Turned(tuple(place), {"dot_dimension_numbers": f"#stablehlo.dot<{', '.join(text)}>"})


_RULES: Mapping[str, Callable[[ir.Operation, Orders], Turned | None]] = {
    "stablehlo.pad": _each_axis("edge_padding_low", "edge_padding_high", "interior_padding"),
    "stablehlo.slice": _each_axis("start_indices", "limit_indices", "strides"),
    "stablehlo.reduce_window": _windows,
    "stablehlo.concatenate": _concatenated,
    "stablehlo.reverse": _reversed,
    "stablehlo.reduce": _reduced,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshaped,
    "stablehlo.dot_general": _multiplied,
}
MOVED_PAST = SAME_PLACE | _RULES.keys() - {"stablehlo.reshape", "stablehlo.dot_general"}
"""Operations that most transposes move past, and are worth it."""
