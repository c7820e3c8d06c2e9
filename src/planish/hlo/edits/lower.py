"""An edit that writes a convolution as what it is made of; it changes no answer."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.writing import Writer
from planish.hlo.lowering import FORMS, forms_of, plain_convolution


@dataclass(frozen=True)
class Lower(Edit):
    """Write a convolution as products of matrices, or as shifted products, where a compiler is slow at it.

    ::

        y = convolution(x, k: 3x3)   -- Lower("y", "product") -->
        y = concatenate(x[0:, 0:], x[0:, 1:], ..., x[2:, 2:]) @ reshape(k)

        y = convolution(x, k), depthwise   -- Lower("y", "slices") -->
        y = x[0:, 0:] * k[0, 0] + x[0:, 1:] * k[0, 1] + ... + x[2:, 2:] * k[2, 2]

    The sums may be taken in another order, so the answer stays to rounding. The paper has nothing like it.

    Args:
        op: the convolution.
        form: one of `planish.hlo.lowering.FORMS`: "product", or "slices" where it is depthwise.
    """

    op: str
    form: str

    def apply(self, draft: Draft) -> None:
        exclusions.target(draft, self.op)
        op = draft.op(self.op)
        if self.form not in FORMS:
            raise ScheduleError(f"a convolution has no form '{self.form}'", f"Known: {', '.join(FORMS)}.")
        if self.form not in forms_of(op):
            raise ScheduleError(f"operation '{self.op}' ({op.name}) has no form '{self.form}'")
        writer = Writer(draft, self.op, self.mark)
        value = FORMS[self.form](writer, plain_convolution(op))
        for user, index in draft.users(self.op)[0]:
            draft.set_operand(user, index, value)
        draft.erase(self.op)


def lowerings(draft: Draft) -> list[Lower]:
    """List the forms of all convolutions that the results need, in the order of the text."""
    live = draft.live()
    return [
        Lower(uid, form)
        for uid, fact in draft.mirror.facts.items()
        if uid in live and fact.name == "stablehlo.convolution" and exclusions.is_target(draft, uid)
        for form in forms_of(draft.op(uid))
    ]
