"""Edit `ReplaceReduction`: what a reduction does with two numbers, and its init value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from planish.core import ScheduleError
from planish.levels.hlo.edits.edit import VariantRewrite, where_legal
from planish.levels.hlo.edits.editable import EditableModule, OpBuilder
from planish.levels.hlo.ir.mlir import TensorType, context, ir, type_of

KINDS = ("add", "multiply", "maximum", "minimum")
_REDUCTIONS = ("stablehlo.reduce", "stablehlo.reduce_window")

_INFINITE = {
    "f64": ("0xFFF0000000000000", "0x7FF0000000000000"),
    "f32": ("0xFF800000", "0x7F800000"),
    "bf16": ("0xFF80", "0x7F80"),
    "f16": ("0xFC00", "0x7C00"),
}
"""Minus infinity and infinity, as MLIR writes them."""


@dataclass(frozen=True)
class ReplaceReduction(VariantRewrite):
    """Replace the combining operation of a reduction, and set its init value to the neutral element.

    Its region and its init value are edited together, so that all compilers agree on what it means: XLA takes
    the numbers in any order, and drops the init value where there is one number alone.

    ::

        y = reduce(x, add, from 0)   -- ReplaceReduction("y", "maximum") -->
        y = reduce(x, maximum, from -inf)

    Args:
        op: a reduction, or one by windows, of one tensor, that does one of `KINDS`.
        by: another one of them.
    """

    op: str
    by: str

    def apply(self, module: EditableModule) -> None:
        module.require_target(self.op)
        if self.by not in KINDS:
            raise ScheduleError(f"a reduction cannot be by '{self.by}'", f"Known: {', '.join(KINDS)}.")
        now = reduces_by(module, self.op)
        if now == self.by:
            raise ScheduleError(f"reduction '{self.op}' is by '{now}' already", "Name another operation.")
        type_ = type_of(module.op(self.op).operands[1])
        init = f"dense<{_neutral(type_, self.by)}> : {type_}"
        value = OpBuilder(module, self.op, self.id_prefix)("constant", type_, [], {"value": init})
        # No edit changes an init value from here on.
        module.frozen |= {f"{self.id_prefix}.0"}
        module.set_operand(self.op, 1, value)
        inner, end = module.blocks[f"{self.op}^0"]
        old = module.op(inner)
        with ir.InsertionPoint(old), ir.Location.unknown(context()):
            new = ir.Operation.create(f"stablehlo.{self.by}", [old.results[0].type], list(old.operands))
        module.insert(new, f"{self.id_prefix}.r", inner)
        module.set_operand(end, 0, new.results[0])
        module.erase(inner)

    @classmethod
    def match(cls, module: EditableModule) -> dict[str, str]:
        """Find the reductions that the results need and that may do something else, with what they do."""
        return where_legal(module.targets(*_REDUCTIONS), lambda uid: reduces_by(module, uid))

    @classmethod
    def variants(cls, uid: str, found: str) -> list[Self]:
        """List all other kinds of a reduction."""
        return [cls(uid, kind) for kind in KINDS if kind != found]


def reduces_by(module: EditableModule, uid: str) -> str:
    """Return which of `KINDS` a reduction does; raises ScheduleError where it is another, or no reduction."""
    info = module.infos[uid]
    if info.name not in _REDUCTIONS or len(info.results) != 1:
        raise ScheduleError(f"operation '{uid}' ({info.name}) is not a reduction of one tensor")
    inner = module.blocks[f"{uid}^0"]
    name = module.infos[inner[0]].name.removeprefix("stablehlo.")
    arguments = {f"{uid}^0#{position}" for position in range(2)}
    given = {module.name(value) for value in module.op(inner[0]).operands}
    type_ = info.results[0]
    plain = type_ is not None and (type_.element in _INFINITE or type_.element in ("i8", "i16", "i32", "i64"))
    if len(inner) != 2 or name not in KINDS or given != arguments or not plain:
        what = f"reduction '{uid}' computes none of: {', '.join(KINDS)}"
        raise ScheduleError(what, "Leave it as it is.")
    return name


def _neutral(type_: TensorType, by: str) -> str:
    if by in ("add", "multiply"):
        one = int(by == "multiply")
        return f"{one}.0" if type_.element in _INFINITE else str(one)
    most = by == "minimum"
    if type_.element in _INFINITE:
        return _INFINITE[type_.element][most]
    half = 2 ** (int(type_.element[1:]) - 1)
    return str(half - 1 if most else -half)
