"""An edit of loops: they take fewer steps."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.counting import LOOP, counter
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.writing import Value, Writer
from planish.hlo.tiling.axes import type_of

SHARES = (7 / 8, 3 / 4, 1 / 2)
"""Of the steps that are taken, the mildest first."""
ENDS = ("first", "last")


@dataclass(frozen=True)
class Shorten(Edit):
    """Let a loop that counts take fewer steps.

    ::

        for i in 0..10: h = f(h, x[i])   -- Shorten("7", 8) -->   for i in 2..10: h = f(h, x[i])

    Args:
        op: a loop whose number of steps is constant.
        steps: how many it takes; 1 or more.
        without: which steps are left out: the "first", or the "last". Of a network that reads a sequence the
            last may matter most; what a loop writes step by step stays as it was before the loop.
    """

    op: str
    steps: int
    without: str = "first"

    def apply(self, draft: Draft) -> None:
        exclusions.target(draft, self.op)
        found = counter(draft, self.op)
        if self.without not in ENDS:
            raise ScheduleError(f"'{self.without}' are no steps of a loop", f"Known: {', '.join(ENDS)}.")
        if not 0 < self.steps < found.steps:
            what = f"a loop of {found.steps} steps cannot take {self.steps} of them"
            raise ScheduleError(what, f"Take 1 to {found.steps - 1}.")
        if self.without == "first":
            later = found.first + (found.steps - self.steps) * found.step
            old = draft.op(self.op).operands[found.place]
            draft.set_operand(self.op, found.place, _constant(draft, self.op, self.mark, old, later))
        else:
            old = draft.op(found.test).operands[1]
            end = _constant(draft, found.test, self.mark, old, found.end(self.steps))
            draft.set_operand(found.test, 1, end)


def shorter(draft: Draft) -> list[Shorten]:
    """List edits of the loops that the results need and that count, the mildest of each first."""
    live, found = draft.live(), list[Shorten]()
    for uid, fact in draft.mirror.facts.items():
        if fact.name != LOOP or uid not in live or not exclusions.is_target(draft, uid):
            continue
        try:
            steps = counter(draft, uid).steps
        except ScheduleError:
            continue
        kept = dict.fromkeys(int(steps * share) for share in SHARES)
        found += [Shorten(uid, keep, end) for keep in kept if 0 < keep < steps for end in ENDS]
    return found


def _constant(draft: Draft, before: str, mark: str, like: Value, number: int) -> Value:
    type_ = type_of(like)
    return Writer(draft, before, mark)("constant", type_, [], {"value": f"dense<{number}> : {type_}"})
