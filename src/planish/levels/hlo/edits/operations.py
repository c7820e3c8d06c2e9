"""Edits of single operations: copies, deletions, moves, swaps, other operands, attributes and constants.

Those of GEVO-ML and GEVO are here; they take any operation, and repair what no longer fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import Edit, Repair, repair, replace_uses
from planish.levels.hlo.edits.editable import EditableModule, Source, verify
from planish.levels.hlo.edits.resize import Resize
from planish.levels.hlo.ir.mlir import context, ir, tensor_type

LARGEST = 4096
"""Elements of a constant that is scaled; each new value stays in memory as long as the process."""


def splat_value(op: ir.Operation | ir.OpView) -> float | None:
    """Return the value of all elements of a constant; None where they differ or are not plain numbers."""
    value = op.attributes["value"]
    splat = value.get_splat_value() if isinstance(value, ir.DenseElementsAttr) and value.is_splat else None
    return float(splat.value) if isinstance(splat, ir.FloatAttr | ir.IntegerAttr | ir.BoolAttr) else None


def can_scale(op: ir.Operation | ir.OpView) -> bool:
    """Return whether a constant is one of floats that can be scaled."""
    type_ = tensor_type(op.results[0].type)
    if type_ is None or not type_.plain or "f" not in type_.element:
        return False
    if not isinstance(op.attributes["value"], ir.DenseElementsAttr):
        return False
    return splat_value(op) is not None or (
        type_.element in {"f32", "f64"} and math.prod(type_.shape) <= LARGEST
    )


def scaled(op: ir.Operation, factor: float) -> None:
    """Multiply a constant; raises ScheduleError where it is none of floats."""
    if not can_scale(op):
        what = f"a constant of {op.results[0].type} cannot be scaled"
        raise ScheduleError(what, "It has floats, and is not large.")
    value = splat_value(op)
    if value is not None:
        _splat(op, value * factor)
        return
    import numpy as np

    type_ = op.results[0].type
    with np.errstate(over="ignore"):
        values: Any = np.array(op.attributes["value"]) * factor
    if not np.isfinite(values).all():
        raise ScheduleError(f"a constant times {factor} has numbers that are not finite")
    element, shape = type_.element_type, type_.shape
    op.attributes["value"] = ir.DenseElementsAttr.get(values, type=element, shape=shape, context=context())


def replaced(op: ir.Operation, value: float) -> None:
    """Set all elements of a constant to one value; raises ScheduleError where it does not fit them."""
    type_ = tensor_type(op.results[0].type)
    whole = float(value).is_integer()  # no number that is not finite is one
    if type_ is None or not type_.plain or not (whole or "f" in type_.element):
        raise ScheduleError(f"{value} cannot be a constant of {op.results[0].type}")
    _splat(op, value)


def _constant(module: EditableModule, uid: str) -> ir.Operation:
    info = module.require_target(uid)
    if info.name != "stablehlo.constant":
        raise ScheduleError(f"expected a constant, got {info.name}")
    return module.op(uid)


def _splat(op: ir.Operation, value: float) -> None:
    type_ = tensor_type(op.results[0].type)
    assert type_ is not None
    if not math.isfinite(value):
        raise ScheduleError(f"expected a finite number, got {value}")
    text = str(value != 0).lower() if type_.element == "i1" else str(int(value))
    if "f" in type_.element:
        # With a point, even before an exponent.
        digits, e, exponent = repr(float(value)).partition("e")
        text = f"{digits if '.' in digits else f'{digits}.0'}{e}{exponent}"
    try:
        attribute = ir.Attribute.parse(f"dense<{text}> : {type_}", context())
    except ir.MLIRError as error:
        raise ScheduleError(f"{value} cannot be a constant of {type_}") from error
    op.attributes["value"] = attribute


@dataclass(frozen=True)
class ReplaceOperand(Edit):
    """Replace an operand of an operation.

    ::

        b = g(a)   -- ReplaceOperand("b", 0, "arg0") -->   b = g(x)

    Args:
        op: the user.
        index: which of its operands, from 0.
        value: what it uses.
        resize: how that is resized.
    """

    op: str
    index: int
    value: str
    resize: Resize = ()

    def apply(self, module: EditableModule) -> None:
        module.require_operand(self.op, self.index)
        module.set_operand(
            self.op, self.index, module.resized((self.value, self.resize), self.op, self.id_prefix)
        )


@dataclass(frozen=True)
class SetAttribute(Edit):
    """Set other attributes of an operation, with the same types.

    ::

        b = iota dim = 0   -- SetAttribute("b", (("iota_dimension", "1 : i64"),)) -->   b = iota dim = 1

    Args:
        op: what is changed.
        attributes: names with values, as MLIR writes them.
    """

    op: str
    attributes: tuple[tuple[str, str], ...]

    def apply(self, module: EditableModule) -> None:
        module.require_target(self.op)
        op = module.op(self.op)
        for name, text in self.attributes:
            # Any other name would be taken, and mean nothing.
            if not hasattr(type(op.opview), name):
                raise ScheduleError(f"operation '{self.op}' ({op.name}) has no attribute '{name}'")
            try:
                # A space, for to parse an empty text crashes the process.
                op.attributes[name] = ir.Attribute.parse(text or " ", context())
            except ir.MLIRError as error:
                raise ScheduleError(f"expected an attribute of MLIR, got '{text}'") from error
        # Now, and not with the whole module: edits after this one read attributes of valid operations.
        verify(op)


@dataclass(frozen=True)
class ScaleConstant(Edit):
    """Multiply a constant of floats.

    ::

        c = 0.01   -- ScaleConstant("c", 2.0) -->   c = 0.02

    Args:
        op: the constant.
        factor: by what.
    """

    op: str
    factor: float

    def apply(self, module: EditableModule) -> None:
        scaled(_constant(module, self.op), self.factor)


@dataclass(frozen=True)
class ReplaceConstant(Edit):
    """Set all elements of a constant to one value.

    ::

        c = 0.01   -- ReplaceConstant("c", 1.0) -->   c = 1.0

    Args:
        op: the constant, of floats, integers or booleans.
        value: the new value; whole for integers, 0 or 1 for booleans.
    """

    op: str
    value: float

    def apply(self, module: EditableModule) -> None:
        replaced(_constant(module, self.op), self.value)


@dataclass(frozen=True)
class CopyOp(Edit):
    """Copy an operation to another position, and let an operation use the copy.

    ::

        a = f(x); b = g(y); c = h(b)   -- CopyOp("a", "c", ((0, "b#0", ()),), "c", 0) -->
        a = f(x); b = g(y); d = f(b); c = h(d)

    Args:
        op: what is copied.
        before: the operation that the copy is put before.
        operands: what the copy uses instead of the original's operands.
        user: the operation that uses the copy's first result; empty for none.
        index: which of its operands.
        resize: how the result is resized for it.
    """

    op: str
    before: str
    operands: tuple[Repair, ...] = ()
    user: str = ""
    index: int = 0
    resize: Resize = ()

    def apply(self, module: EditableModule) -> None:
        module.require_target(self.op)
        module.require_open(self.before)
        module.copy(self.op, self.id_prefix, self.before)
        repair(module, self.id_prefix, self.operands, self.id_prefix)
        if self.user:
            module.require_operand(self.user, self.index)
            block = module.info(self.before).block
            # The user may be inside another operation of the block: the value must be there before that one.
            value = module.resized(
                (f"{self.id_prefix}#0", self.resize), module.ancestor(self.user, block), f"{self.id_prefix}.u"
            )
            module.set_operand(self.user, self.index, value)


@dataclass(frozen=True)
class DeleteOp(Edit):
    """Delete an operation; other values replace its results.

    ::

        a = f(x); b = g(a)   -- DeleteOp("a", (("arg0", ()),)) -->   b = g(x)

    Args:
        op: what is deleted.
        values: for each result, what its users take instead, and how it is resized.
    """

    op: str
    values: tuple[Source, ...]

    def apply(self, module: EditableModule) -> None:
        module.require_target(self.op)
        replace_uses(module, self.op, self.values, module.users(self.op), self.id_prefix)
        module.erase(self.op)


@dataclass(frozen=True)
class MoveOp(Edit):
    """Put an operation elsewhere in its block.

    ::

        a = f(x); b = g(a)   -- MoveOp("b", "a", ((0, "arg0", ()),)) -->   b = g(x); a = f(x)

    Args:
        op: what is moved.
        before: the operation that it is put before.
        operands: what it uses instead of values that come later than its new position.
        values: for each result, what users before its new position take instead; empty when moving up.
    """

    op: str
    before: str
    operands: tuple[Repair, ...] = ()
    values: tuple[Source, ...] = ()

    def apply(self, module: EditableModule) -> None:
        info = module.require_target(self.op)
        if module.require_open(self.before).block != info.block:
            what = f"cannot move operation '{self.op}' before '{self.before}'"
            raise ScheduleError(what, "Both are of one block.")
        limit = module.position(self.before)
        earlier = [
            [(uid, i) for uid, i in users if module.position(module.ancestor(uid, info.block)) < limit]
            for users in module.users(self.op)
        ]
        replace_uses(module, self.op, self.values, earlier, self.id_prefix)
        module.move(self.op, self.before)
        repair(module, self.op, self.operands, self.id_prefix)


@dataclass(frozen=True)
class SwapOps(Edit):
    """Exchange two operations of a block: each stands where the other stood and has the other's users.

    ::

        a = f(x); b = g(a); c = h(b)   -- SwapOps("a", "b", ((0, "arg0", ()),)) -->
        b = g(x); a = f(x); c = h(a)

    Args:
        a: the earlier one, with one result.
        b: the later one, with one result.
        operands: what `b` uses instead of values that come later than its new position.
        to_a: how the result of `b` is resized for the users of `a`.
        to_b: how the result of `a` is resized for the users of `b`.
    """

    a: str
    b: str
    operands: tuple[Repair, ...] = ()
    to_a: Resize = ()
    to_b: Resize = ()

    def apply(self, module: EditableModule) -> None:
        a, b = module.require_target(self.a), module.require_target(self.b)
        if a.block != b.block or module.position(self.a) >= module.position(self.b):
            raise ScheduleError(f"cannot swap operations '{self.a}' and '{self.b}'", "The first comes first.")
        if len(a.results) != 1 or len(b.results) != 1:
            raise ScheduleError("only operations with one result are swapped")
        order = module.blocks[a.block]
        after_a, after_b = (order[order.index(uid) + 1] for uid in (self.a, self.b))
        # b's own use of a is repaired with its operands, for it comes before a from here on.
        of_a = [(uid, i) for uid, i in module.users(self.a)[0] if uid != self.b]
        of_b = module.users(self.b)[0]
        module.move(self.b, self.a)
        repair(module, self.b, self.operands, self.id_prefix)
        module.move(self.a, after_b)
        # Where b came just after a, that position is a's own now, for b has moved before it.
        as_a = module.resized(
            (f"{self.b}#0", self.to_a), self.a if after_a == self.b else after_a, f"{self.id_prefix}.a"
        )
        as_b = module.resized((f"{self.a}#0", self.to_b), after_b, f"{self.id_prefix}.b")
        for value, users in ((as_a, of_a), (as_b, of_b)):
            for uid, index in users:
                module.set_operand(uid, index, value)
