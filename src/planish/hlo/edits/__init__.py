"""Edits of StableHLO modules: steps that carry their repairs, what they may touch, and random ones."""

from planish.hlo.edits.changing import ReplaceConstant, ReplaceOperand, ScaleConstant, SetAttribute
from planish.hlo.edits.drop_channels import DropChannels, droppable, narrower
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.exclusions import fixed_operations
from planish.hlo.edits.factor import Factor, factorable, lower_ranks
from planish.hlo.edits.fold import Fold, foldable
from planish.hlo.edits.freeze import Freeze, frozen_parts, updates
from planish.hlo.edits.hoist import Hoist, hoistable
from planish.hlo.edits.lower import Lower, lowerings
from planish.hlo.edits.mirror import Fact
from planish.hlo.edits.module_draft import Draft
from planish.hlo.edits.narrow import Narrow, narrowable
from planish.hlo.edits.operation_edits import CopyOp, DeleteOp, MoveOp, SwapOps
from planish.hlo.edits.propose import EXACT, applied, propose
from planish.hlo.edits.quantize import Quantize, quantizable
from planish.hlo.edits.relayout import Relayout, layouts
from planish.hlo.edits.replace_reduction import ReplaceReduction, reductions
from planish.hlo.edits.share import Share, shareable
from planish.hlo.edits.shorten import Shorten, shorter
from planish.hlo.edits.shrink import Shrink, shrinks
from planish.hlo.edits.sink import Sink, sinkable
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
    "Factor",
    "Fold",
    "Freeze",
    "Hoist",
    "Lower",
    "MoveOp",
    "Narrow",
    "Quantize",
    "Relayout",
    "ReplaceConstant",
    "ReplaceOperand",
    "ReplaceReduction",
    "ScaleConstant",
    "SetAttribute",
    "Share",
    "Shorten",
    "Shrink",
    "Sink",
    "SwapOps",
    "TileBatch",
    "applied",
    "droppable",
    "factorable",
    "fixed_operations",
    "foldable",
    "frozen_parts",
    "hoistable",
    "layouts",
    "lower_ranks",
    "lowerings",
    "narrowable",
    "narrower",
    "propose",
    "quantizable",
    "reductions",
    "shareable",
    "shorter",
    "shrinks",
    "sinkable",
    "updates",
]
