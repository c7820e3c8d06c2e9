"""Edits of StableHLO modules: steps that carry their repairs, what they may touch, and random ones."""

from planish.hlo.edits.draft import Draft
from planish.hlo.edits.mirror import Fact
from planish.hlo.edits.propose import applied, propose
from planish.hlo.edits.rules import fixed_operations
from planish.hlo.edits.steps import (
    EDITS,
    CopyOp,
    DeleteOp,
    Edit,
    MoveOp,
    ReplaceConstant,
    ReplaceOperand,
    ScaleConstant,
    SetAttribute,
    SwapOps,
)

__all__ = [
    "EDITS",
    "CopyOp",
    "DeleteOp",
    "Draft",
    "Edit",
    "Fact",
    "MoveOp",
    "ReplaceConstant",
    "ReplaceOperand",
    "ScaleConstant",
    "SetAttribute",
    "SwapOps",
    "applied",
    "fixed_operations",
    "propose",
]
