"""Edit `SinkTransposes`: transposes move down a function until they meet their inverses; no answer changes.

There is a rule for each operation that can be done on the transposed operands' sources, so that its results
are transposed instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import GroupRewrite
from planish.levels.hlo.edits.editable import EditableModule, OpBuilder
from planish.levels.hlo.ir.mlir import (
    ELEMENTWISE,
    TensorType,
    Value,
    dot_axes,
    integer,
    integers,
    ir,
    mlir_type,
    padding_of,
    shape_of,
    tensor_type,
    type_of,
    uid_of,
)

Order = tuple[int, ...]
"""Of a transpose: which dimension of the source each dimension of the result is."""


TRANSPOSE = "stablehlo.transpose"


@dataclass(frozen=True)
class SinkTransposes(GroupRewrite):
    """Do what follows a transpose on its source, and transpose the results, until that cancels out.

    Transposes move down through element-wise operations, reductions, windows, pads, slices, concatenations
    and products, join others, and go where two undo each other. What needs the old order (a convolution, a
    result of the function) gets one transpose. The answer stays, to rounding: a product may sum in another
    order.

    ::

        y = transpose(relu(transpose(x)))   -- SinkTransposes(("0",)) -->   y = relu(x)

    Args:
        ops: transposes of the function that begin to move.
    """

    exact = True

    def apply(self, module: EditableModule) -> None:
        for uid in self.ops:
            if module.require_target(uid).name != TRANSPOSE or module.infos[uid].block:
                raise ScheduleError(
                    f"operation '{uid}' is not a transpose of the function", "Name transposes."
                )
        if not _Sinking(module, frozenset(self.ops), self.id_prefix).done():
            raise ScheduleError("no transpose can move down", "What follows these needs the order.")

    @classmethod
    def match(cls, module: EditableModule) -> tuple[str, ...]:
        """Find the transposes that the results need and that may move past a user.

        Products and reshapes alone are not a reason: compilers take transposes into products themselves.
        """

        def moves(uid: str) -> bool:
            infos = (module.infos[user] for user, _ in module.users(uid)[0] if module.is_target(user))
            return any(not info.block and info.name in {TRANSPOSE, *MOVED_PAST} for info in infos)

        live = module.live()
        transposes = (uid for uid in module.blocks[""] if module.infos[uid].name == TRANSPOSE)
        return tuple(uid for uid in transposes if uid in live and moves(uid))


class _Sinking:
    """One walk down a function."""

    def __init__(self, module: EditableModule, roots: frozenset[str], id_prefix: str) -> None:
        self._module, self._roots, self._id_prefix = module, roots, id_prefix
        self._known: dict[Value, tuple[Value, Order]] = {}
        """Values, with what they are transposes of."""
        self._absorbed: dict[str, Sequence[Value]] = {}
        """Operations that are done on sources, with their new results."""
        self._number = 0

    def done(self) -> bool:
        """Move all transposes, and return whether any moved."""
        for uid in list(self._module.blocks[""]):
            if self._module.is_target(uid):
                self._visit(uid)
        self._restore()
        return bool(self._absorbed)

    def _visit(self, uid: str) -> None:
        op = self._module.op(uid)
        found = [self._known.get(operand) for operand in op.operands]
        if op.name == TRANSPOSE:
            self._transpose(uid, op.operands[0], found[0])
        elif any(found) and all(tensor_type(value.type) for value in (*op.operands, *op.results)):
            plan = turned(op, [one and one[1] for one in found])
            if plan is not None:
                self._absorb(uid, plan, [one and one[0] for one in found])

    def _transpose(self, uid: str, operand: Value, known: tuple[Value, Order] | None) -> None:
        """Take a transpose together with the one before it."""
        if known is None and uid not in self._roots:
            return
        source, first = known or (operand, tuple(range(len(shape_of(operand)))))
        order = composed(first, integers(self._module.op(uid), "permutation"))
        if known is not None:
            self._absorbed[uid] = [source]
        self._give(uid, [source], order)

    def _absorb(self, uid: str, plan: Turned, sources: Sequence[Value | None]) -> None:
        """Do an operation on the sources."""
        op, build = self._module.op(uid), self._builder(uid)
        operands = [
            source if source is not None else _fitting(build, operand, plan.others)
            for operand, source in zip(op.operands, sources, strict=True)
        ]
        types = [source_type(type_of(result), plan.order) for result in op.results]
        results = build.again(op, operands, types, plan.attributes)
        self._absorbed[uid] = results
        self._give(uid, results, plan.order)

    def _give(self, uid: str, sources: Sequence[Value], order: Order) -> None:
        """Note what the results are transposes of; where they are the same, their users take these."""
        for result, source in zip(self._module.op(uid).results, sources, strict=True):
            if order == tuple(sorted(order)):
                _replace(self._module, result, source)
            else:
                self._known[result] = source, order

    def _restore(self) -> None:
        """Transpose what is needed in the old order, and take out what nothing needs any more."""
        # Backwards, since what is used cannot be erased, and users come later.
        for uid in reversed(list(self._absorbed)):
            for result in self._module.op(uid).results:
                if any(True for _ in result.uses):
                    (source, order), build = self._known[result], self._builder(uid)
                    value = build("transpose", type_of(result), [source], {"permutation": order})
                    _replace(self._module, result, value)
            self._module.erase(uid)
        for uid in self._roots - set(self._absorbed):
            if not any(self._module.users(uid)):
                self._module.erase(uid)

    def _builder(self, uid: str) -> OpBuilder:
        self._number += 1
        return OpBuilder(self._module, uid, f"{self._id_prefix}.{self._number}")


def _fitting(build: OpBuilder, value: Value, order: Order) -> Value:
    """Turn a value that is not a transpose, so that it fits sources; scalars stay."""
    if not order or not shape_of(value):
        return value
    made, type_ = ir.OpResult(value).owner.operation, source_type(type_of(value), order)
    if made.name == "stablehlo.broadcast_in_dim":
        to = [order[axis] for axis in integers(made, "broadcast_dimensions")]
        return build("broadcast_in_dim", type_, [made.operands[0]], {"broadcast_dimensions": to})
    constant = made.attributes["value"]
    if isinstance(constant, ir.DenseElementsAttr) and constant.is_splat:
        splat = ir.DenseElementsAttr.get_splat(mlir_type(type_), constant.get_splat_value())
        return build("constant", type_, [], {"value": splat})
    return build("transpose", type_, [value], {"permutation": inverse(order)})


def _replace(module: EditableModule, value: Value, by: Value) -> None:
    for use in list(value.uses):
        module.set_operand(uid_of(use.owner), use.operand_number, by)


Orders = Sequence[Order | None]
"""Of an operation's operands: how their sources are transposed; None for what is not a transpose."""


@dataclass(frozen=True)
class Turned:
    """An operation on the sources of its operands.

    Args:
        order: how its results are transposed to be what they were; sorted where they are that already.
        attributes: those that change: integers, or as MLIR writes them.
        others: how the operands that are not transposes are turned to fit; empty where they stay.
    """

    order: Order
    attributes: Mapping[str, str | Sequence[int]] = field(default_factory=dict[str, str | Sequence[int]])
    others: Order = ()


def turned(op: ir.Operation, orders: Orders) -> Turned | None:
    """Return how an operation is done on the sources; None where no rule says so."""
    rule = (
        _common_order(lambda _, order: Turned(order, others=order))
        if op.name in ELEMENTWISE
        else _RULES.get(op.name)
    )
    return rule(op, orders) if rule else None


CommonRule = Callable[[ir.Operation, Order], Turned]


def _common_order(rule: CommonRule) -> Callable[[ir.Operation, Orders], Turned | None]:
    """Make a rule for operations whose operands, but scalars and what is free, are all transposed alike."""

    def common(op: ir.Operation, orders: Orders) -> Turned | None:
        found = {order for order in orders if order is not None}
        pairs = zip(op.operands, orders, strict=True)
        others = [value for value, order in pairs if order is None and shape_of(value)]
        return rule(op, found.pop()) if len(found) == 1 and all(map(is_free, others)) else None

    return common


def _each_axis(*names: str) -> CommonRule:
    """Make a rule for operations whose attributes have a number for each dimension."""

    def rule(op: ir.Operation, order: Order) -> Turned:
        given = [name for name in names if name in op.attributes]
        return Turned(order, {name: reordered(integers(op, name), order) for name in given}, order)

    return rule


def _windows(op: ir.Operation, order: Order) -> Turned:
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")
    found = _each_axis(*names)(op, order)
    if "padding" not in op.attributes:
        return found
    pairs = padding_of(op, len(order))
    moved = [list(pairs[position]) for position in inverse(order)]
    padding = f"dense<{moved}> : tensor<{len(moved)}x2xi64>"
    return Turned(order, {**found.attributes, "padding": padding}, order)


def _reduced(op: ir.Operation, order: Order) -> Turned:
    gone = integers(op, "dimensions")
    kept = [order[axis] for axis in range(len(order)) if axis not in gone]
    position = {axis: number for number, axis in enumerate(sorted(kept))}
    dimensions = sorted(order[axis] for axis in gone)
    return Turned(tuple(position[axis] for axis in kept), {"dimensions": dimensions}, order)


def _broadcast(op: ir.Operation, orders: Orders) -> Turned | None:
    """A broadcast puts dimensions where it likes."""
    (order,) = orders
    to = integers(op, "broadcast_dimensions")
    result = tuple(range(len(shape_of(op.results[0]))))
    return Turned(result, {"broadcast_dimensions": reordered(to, order)}) if order else None


def _reshaped(op: ir.Operation, orders: Orders) -> Turned | None:
    """A reshape takes no notice of where dimensions of one element are."""
    (order,) = orders
    shape = shape_of(op.operands[0])
    long = [axis for axis, size in zip(order or (), shape, strict=False) if size != 1]
    return Turned(tuple(range(len(shape_of(op.results[0]))))) if order and long == sorted(long) else None


def _multiplied(op: ir.Operation, orders: Orders) -> Turned | None:
    """A product names the dimensions that it sums over; those that are free stay in order."""
    axes = dot_axes(op)
    text, position = list[str](), list(range(len(axes.batching[0])))
    for side, name in enumerate(("lhs", "rhs")):
        order = orders[side] or range(len(shape_of(op.operands[side])))
        text.append(f"{name}_batching_dimensions = {[order[axis] for axis in axes.batching[side]]}")
        text.append(f"{name}_contracting_dimensions = {[order[axis] for axis in axes.summed[side]]}")
        free = [order[axis] for axis in axes.free[side]]
        position += [len(position) + sorted(free).index(axis) for axis in free]
    return Turned(tuple(position), {"dot_dimension_numbers": f"#stablehlo.dot<{', '.join(text)}>"})


_COMMON: Mapping[str, CommonRule] = {
    "pad": _each_axis("edge_padding_low", "edge_padding_high", "interior_padding"),
    "slice": _each_axis("start_indices", "limit_indices", "strides"),
    "reduce_window": _windows,
    "concatenate": lambda op, order: Turned(
        order, {"dimension": f"{order[integer(op, 'dimension')]} : i64"}, order
    ),
    "reverse": lambda op, order: Turned(
        order, {"dimensions": [order[axis] for axis in integers(op, "dimensions")]}, order
    ),
    "reduce": _reduced,
}
_RULES: Mapping[str, Callable[[ir.Operation, Orders], Turned | None]] = {
    **{f"stablehlo.{name}": _common_order(rule) for name, rule in _COMMON.items()},
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshaped,
    "stablehlo.dot_general": _multiplied,
}
MOVED_PAST = ELEMENTWISE | _RULES.keys() - {"stablehlo.reshape", "stablehlo.dot_general"}
"""Operations that most transposes move past, and are worth it."""


_FREE = ("stablehlo.broadcast_in_dim", "stablehlo.constant")


def composed(first: Order, second: Sequence[int]) -> Order:
    """Return the order of two transposes, one after the other."""
    return tuple(first[axis] for axis in second)


def inverse(order: Order) -> Order:
    """Return the order that undoes one."""
    return tuple(order.index(axis) for axis in range(len(order)))


def reordered(values: Sequence[int], order: Order) -> list[int]:
    """Reorder numbers of a transpose's dimensions: from those of its result to those of its source."""
    return [values[position] for position in inverse(order)]


def source_type(type_: TensorType, order: Order) -> TensorType:
    """Return the type of what is transposed, of the type that this gives."""
    return TensorType(tuple(reordered(type_.shape, order)), type_.element)


def is_free(value: ir.Value[Any]) -> bool:
    """Return whether a value is a constant or a broadcast: these are made in another order as easily."""
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name in _FREE
