"""What a user is told of evaluations that were lost with their workers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planish.core import PlanishError

if TYPE_CHECKING:
    from collections import Counter

_CAUSES = 2


class LostError(PlanishError):
    """One worker after the other is lost before it has done what nothing can go on without."""


def loss_notes(losses: "Counter[str]", given_up: int) -> Sequence[str]:
    """Tell how many evaluations were lost; nothing where none was.

    Args:
        losses: cause to how many, each attempt counted.
        given_up: candidates that were lost each time they were evaluated.
    """
    if not losses:
        return ()
    causes = ", ".join(cause for cause, _ in losses.most_common(_CAUSES))
    count = losses.total()
    were = "evaluation was lost with its worker" if count == 1 else "evaluations were lost with their workers"
    what = f"{count:,} {were} ({causes}) and done again"
    if not given_up:
        return (what,)
    return (f"{what}; {given_up:,} in vain: the same command tries them once more",)
