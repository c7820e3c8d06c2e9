"""Edits of StableHLO modules, as steps: each carries its repair, so that a patch replays to the same module.

`CopyOp` and `DeleteOp` are those of GEVO-ML (section 4.1); `ReplaceOperand`, `SwapOps` and `MoveOp` are of
its predecessor GEVO; those in `EXACT` are ours and change no answer; `Shrink`, `Narrow`, `Quantize`,
`DropChannels`, `Factor`, `Shorten`, `Freeze` and `ReplaceReduction` are ours and do; the others are what its
section 7 leaves to the future.

Operations are named by their ids, values as `planish.levels.hlo.edits.editable` says. What an edit makes has
ids that begin with the edit's content hash, the same in every patch, so that other edits may refer to them.
"""

from planish.levels.hlo.edits.deferred import applied, finished, identity_of
from planish.levels.hlo.edits.drop_channels import DropChannels
from planish.levels.hlo.edits.edit import Edit, Rewrite
from planish.levels.hlo.edits.editable import EditableModule
from planish.levels.hlo.edits.factor import Factor
from planish.levels.hlo.edits.fold import Fold
from planish.levels.hlo.edits.freeze import Freeze
from planish.levels.hlo.edits.hoist import Hoist
from planish.levels.hlo.edits.lower import Lower
from planish.levels.hlo.edits.op_index import OpInfo
from planish.levels.hlo.edits.operations import (
    CopyOp,
    DeleteOp,
    MoveOp,
    ReplaceConstant,
    ReplaceOperand,
    ScaleConstant,
    SetAttribute,
    SwapOps,
)
from planish.levels.hlo.edits.precision import Narrow, Quantize
from planish.levels.hlo.edits.propose import EXACT, REWRITES, propose
from planish.levels.hlo.edits.relayout import Relayout
from planish.levels.hlo.edits.replace_reduction import ReplaceReduction
from planish.levels.hlo.edits.share import Share
from planish.levels.hlo.edits.shorten import Shorten
from planish.levels.hlo.edits.shrink import Shrink
from planish.levels.hlo.edits.sink_transposes import SinkTransposes
from planish.levels.hlo.edits.tile_batch import TileBatch, batch_size

__all__ = [
    "EDITS",
    "EXACT",
    "REWRITES",
    "CopyOp",
    "DeleteOp",
    "DropChannels",
    "Edit",
    "EditableModule",
    "Factor",
    "Fold",
    "Freeze",
    "Hoist",
    "Lower",
    "MoveOp",
    "Narrow",
    "OpInfo",
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
    "SinkTransposes",
    "SwapOps",
    "TileBatch",
    "applied",
    "batch_size",
    "finished",
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
