"""Which edits are worth a measurement."""

from __future__ import annotations

from typing import Literal

from planish.hlo.edits import CopyOp, DeleteOp, Draft, Edit, MoveOp, ReplaceOperand, SwapOps

Wants = Literal["any", "other", "less"]
"""Of what an edit must give: any module; one that computes something other; one that also computes less.

A module that answers has nothing to gain from an operation more, one that trains may: figure 5 of the paper
copies a division, which raises the gradient.
"""

_REARRANGING = (CopyOp, DeleteOp, MoveOp, ReplaceOperand, SwapOps)
"""What changes which values are used. All others change a number, or how something is computed."""


def wanted(parent: Draft, edit: Edit, child: Draft, wants: Wants) -> bool:
    """Whether the module that an edit gives is what is wanted."""
    if wants == "less" and isinstance(edit, _REARRANGING) and not parent.live() - child.live():
        return False
    return wants == "any" or child.identity() != parent.identity()
