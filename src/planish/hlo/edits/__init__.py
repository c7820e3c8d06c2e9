"""Edits of StableHLO modules, as steps: each carries its repair, so that a patch replays to the same module.

`CopyOp` and `DeleteOp` are those of GEVO-ML (section 4.1); `ReplaceOperand`, `SwapOps` and `MoveOp` are of
its predecessor GEVO; those in `EXACT` are ours and change no answer; `Shrink`, `Narrow`, `Quantize`,
`DropChannels`, `Factor`, `Shorten`, `Freeze` and `ReplaceReduction` are ours and do; the others are what its
section 7 leaves to the future.

Operations are named by their ids, values as `planish.hlo.edits.draft` says. What an edit makes has ids that
begin with the edit's content hash, the same in every patch, so that other edits may refer to them.
"""

from planish.hlo.edits.deferred import applied, finished, identity_of
from planish.hlo.edits.draft import Draft
from planish.hlo.edits.drop_channels import DropChannels
from planish.hlo.edits.edit import Edit, Rewrite
from planish.hlo.edits.exclusions import fixed_operations
from planish.hlo.edits.factor import Factor
from planish.hlo.edits.fold import Fold
from planish.hlo.edits.freeze import Freeze
from planish.hlo.edits.hoist import Hoist
from planish.hlo.edits.lower import Lower
from planish.hlo.edits.mirror import Fact
from planish.hlo.edits.operations import (
    CopyOp,
    DeleteOp,
    MoveOp,
    ReplaceConstant,
    ReplaceOperand,
    ScaleConstant,
    SetAttribute,
    SwapOps,
)
from planish.hlo.edits.precision import Narrow, Quantize
from planish.hlo.edits.propose import EXACT, REWRITES, propose
from planish.hlo.edits.relayout import Relayout
from planish.hlo.edits.replace_reduction import ReplaceReduction
from planish.hlo.edits.share import Share
from planish.hlo.edits.shorten import Shorten
from planish.hlo.edits.shrink import Shrink
from planish.hlo.edits.sink import Sink
from planish.hlo.edits.tile_batch import TileBatch, batch_size

__all__ = [
    "EDITS",
    "EXACT",
    "REWRITES",
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
    "Rewrite",
    "ScaleConstant",
    "SetAttribute",
    "Share",
    "Shorten",
    "Shrink",
    "Sink",
    "SwapOps",
    "TileBatch",
    "applied",
    "batch_size",
    "finished",
    "fixed_operations",
    "identity_of",
    "propose",
]

EDITS: dict[str, type[Edit]] = {
    edit.__name__: edit
    for edit in (
        CopyOp,
        DeleteOp,
        ReplaceOperand,
        SwapOps,
        MoveOp,
        SetAttribute,
        ScaleConstant,
        ReplaceConstant,
        *REWRITES,
    )
}
"""Name to class of every edit."""
