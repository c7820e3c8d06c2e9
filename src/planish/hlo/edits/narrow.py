"""An edit of the precision: products and convolutions read narrower numbers."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.resize import Resize
from planish.hlo.ir import TensorType
from planish.hlo.ir.mlir import FLOAT_BITS

PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")


@dataclass(frozen=True)
class Narrow(Edit):
    """Let products and convolutions read narrower floats; they sum, and give, what they did.

    ::

        y: f32 = dot(a, b)   -- Narrow(("y",), "bf16") -->   y: f32 = dot(convert(a): bf16, convert(b): bf16)

    Args:
        ops: the products and convolutions.
        element: the type of what they read, one of `FLOAT_BITS`, of fewer bits than they read now.
    """

    ops: tuple[str, ...]
    element: str = "bf16"

    def apply(self, draft: Draft) -> None:
        if self.element not in FLOAT_BITS:
            raise ScheduleError(f"'{self.element}' is no type of floats", f"Known: {', '.join(FLOAT_BITS)}.")
        if not self.ops:
            raise ScheduleError("no operation is named", "Name products or convolutions.")
        for number, uid in enumerate(self.ops):
            exclusions.target(draft, uid)
            if not can_narrow(draft, uid, self.element):
                raise ScheduleError(f"operation '{uid}' is no product of floats wider than {self.element}")
            convert: Resize = (("convert", self.element),)
            for index, operand in enumerate(list(draft.op(uid).operands)):
                made = draft.resized((draft.name(operand), convert), uid, f"{self.mark}.{number}.{index}")
                draft.retype_operand(uid, index, made)


def can_narrow(draft: Draft, uid: str, element: str = "bf16") -> bool:
    """Whether an operation is a product or convolution that reads wider floats, and gives floats."""
    fact = draft.mirror.facts[uid]
    wider = all(_is_wider(type_, element) for type_ in fact.operands)
    return (
        fact.name in PRODUCTS
        and wider
        and all(t is not None and t.element in FLOAT_BITS for t in fact.results)
    )


def _is_wider(type_: TensorType | None, element: str) -> bool:
    return type_ is not None and FLOAT_BITS.get(type_.element, 0) > FLOAT_BITS[element]


def narrowable(draft: Draft) -> tuple[str, ...]:
    """List the products and convolutions that the results need and that may read narrower floats."""
    live = draft.live()
    return tuple(
        uid
        for uid in draft.mirror.facts
        if uid in live and can_narrow(draft, uid) and exclusions.is_target(draft, uid)
    )
