"""An edit of the rank: weights become the product of two smaller matrices."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits import exclusions
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.writing import Writer
from planish.hlo.factoring import factored, weights_of

SHARES = (3 / 4, 1 / 2, 1 / 4)
"""Of the largest rank that saves anything, the mildest first."""


@dataclass(frozen=True)
class Factor(Edit):
    """Let a product or a convolution have weights of a lower rank: two smaller ones, one after the other.

    They come from the singular value decomposition of the weights, which are a constant, as a matrix of what
    is summed over by what is given: of all matrices of this rank theirs is nearest. A convolution gives
    `rank` channels first, and a convolution of one pixel makes the old channels of them.

    ::

        y = x @ w: 64x64   -- Factor("y", 16) -->   y = (x @ u: 64x16) @ v: 16x64

    Args:
        op: the product or convolution.
        rank: of the weights; 1 or more, and so few that it saves multiplications.
    """

    op: str
    rank: int

    def apply(self, draft: Draft) -> None:
        exclusions.target(draft, self.op)
        weights = weights_of(draft.op(self.op))
        if not 0 < self.rank <= weights.useful:
            sizes = f"{weights.inputs} x {weights.outputs}"
            what = f"weights of {sizes} cannot have rank {self.rank}"
            raise ScheduleError(what, f"From 1 to {weights.useful} it saves something.")
        value = factored(Writer(draft, self.op, self.mark), draft.op(self.op), weights, self.rank)
        for user, index in draft.users(self.op)[0]:
            draft.set_operand(user, index, value)
        draft.erase(self.op)


def factorable(draft: Draft) -> dict[str, int]:
    """List what may be factored, of what the results need, with the largest rank that saves anything."""
    live, found = draft.live(), dict[str, int]()
    for uid in draft.mirror.facts:
        if uid in live and exclusions.is_target(draft, uid):
            try:
                useful = weights_of(draft.op(uid)).useful
            except ScheduleError:
                continue
            if useful:
                found[uid] = useful
    return found


def lower_ranks(uid: str, useful: int) -> list[Factor]:
    """List edits that take a share of a rank, the mildest first."""
    ranks = dict.fromkeys(int(useful * share) for share in SHARES)
    return [Factor(uid, rank) for rank in ranks if rank]
