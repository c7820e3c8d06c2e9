"""Which passes a language model can write."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from planish.models.policy_files import SavedPolicy


def require_passes(policy: SavedPolicy, named: Collection[str] = ()) -> None:
    """Make sure that a language model writes passes of this LLVM, and can write those that are named.

    Args:
        policy: the model.
        named: passes of labels, which it would spell as text if it had no tokens for them.

    Raises:
        PlanishError: it does not, or cannot.
    """
    from planish.core import PlanishError
    from planish.llvm.passes import PassSpace, elements

    hint = "Train one without --first."
    objective = policy.schema.name.rpartition("/")[2]
    if why := policy.unfit(PassSpace([*elements().values()], objective=objective)):
        raise PlanishError(f"the policy {policy.name} {why}", hint)
    if missing := sorted({*named} - {*policy.actions}):
        what = f"the policy {policy.name} has no tokens for passes of the labels"
        raise PlanishError(f"{what}: {', '.join(missing[:3])}", hint)
