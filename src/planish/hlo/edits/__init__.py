"""Edits of StableHLO modules: steps that carry their repairs, what they may touch, and random ones."""

from planish.hlo.edits.changing import ReplaceConstant, ReplaceOperand, ScaleConstant, SetAttribute
from planish.hlo.edits.drop_channels import DropChannels, droppable, narrower
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.exclusions import fixed_operations
from planish.hlo.edits.fold import Fold, foldable
from planish.hlo.edits.lower import Lower, lowerings
from planish.hlo.edits.mirror import Fact
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.narrow import Narrow, narrowable
from planish.hlo.edits.operation_edits import CopyOp, DeleteOp, MoveOp, SwapOps
from planish.hlo.edits.propose import EXACT, applied, propose
from planish.hlo.edits.shrink import Shrink, shrinks
from planish.hlo.edits.steps import EDITS
from planish.hlo.edits.tile_batch import TileBatch

__all__ = [
    "EDITS",
    "EXACT",
    "CopyOp",
    "DeleteOp",
    "Draft",
    "DropChannels",
    "Edit",
    "Fact",
    "Fold",
    "Lower",
    "MoveOp",
    "Narrow",
    "ReplaceConstant",
    "ReplaceOperand",
    "ScaleConstant",
    "SetAttribute",
    "Shrink",
    "SwapOps",
    "TileBatch",
    "applied",
    "droppable",
    "fixed_operations",
    "foldable",
    "lowerings",
    "narrowable",
    "narrower",
    "propose",
    "shrinks",
]
