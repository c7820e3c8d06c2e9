"""Edits of one operation in its place: its operands, attributes and constants."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.other_constants import replaced, scaled
from planish.hlo.edits.resize import Resize
from planish.hlo.ir import context, ir


@dataclass(frozen=True)
class ReplaceOperand(Edit):
    """Let an operation use another value.

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

    def apply(self, draft: Draft) -> None:
        exclusions.use(draft, self.op, self.index)
        draft.set_operand(self.op, self.index, draft.resized((self.value, self.resize), self.op, self.mark))


@dataclass(frozen=True)
class SetAttribute(Edit):
    """Give an operation other attributes, with the same types.

    ::

        b = iota dim = 0   -- SetAttribute("b", (("iota_dimension", "1 : i64"),)) -->   b = iota dim = 1

    Args:
        op: what is changed.
        attributes: names with values, as MLIR writes them.
    """

    op: str
    attributes: tuple[tuple[str, str], ...]

    def apply(self, draft: Draft) -> None:
        exclusions.target(draft, self.op)
        op = draft.op(self.op)
        for name, text in self.attributes:
            # Any other name would be taken, and mean nothing.
            if not hasattr(type(op.opview), name):
                raise ScheduleError(f"operation '{self.op}' ({op.name}) has no attribute '{name}'")
            try:
                op.attributes[name] = ir.Attribute.parse(text, context())
            except ir.MLIRError as error:
                raise ScheduleError(f"'{text}' is no attribute") from error


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

    def apply(self, draft: Draft) -> None:
        exclusions.target(draft, self.op)
        scaled(draft.op(self.op), self.factor)


@dataclass(frozen=True)
class ReplaceConstant(Edit):
    """Give all elements of a constant one value.

    ::

        c = 0.01   -- ReplaceConstant("c", 1.0) -->   c = 1.0

    Args:
        op: the constant, of floats, integers or booleans.
        value: the new value; whole for integers, 0 or 1 for booleans.
    """

    op: str
    value: float

    def apply(self, draft: Draft) -> None:
        exclusions.target(draft, self.op)
        replaced(draft.op(self.op), self.value)
