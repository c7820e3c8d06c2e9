"""The edits of GEVO-ML, as steps: each carries its repair, so that a patch replays to the same module.

`CopyOp` and `DeleteOp` are those of the paper (section 4.1); `ReplaceOperand`, `SwapOps` and `MoveOp` are of
its predecessor GEVO; those in `EXACT` (`planish.hlo.edits.propose`) are ours and change no answer; `Shrink`,
`Narrow`, `Quantize`, `DropChannels`, `Factor`, `Shorten`, `Freeze` and `ReplaceReduction` are ours and do;
the others are what its section 7 leaves to the future. Operations are named by their ids,
values as `planish.hlo.edits.module_draft` says. What an edit makes has ids that begin with the edit's content
hash, the same in every patch, so that other edits may refer to them.
"""

from __future__ import annotations

from planish.hlo.edits.changing import ReplaceConstant, ReplaceOperand, ScaleConstant, SetAttribute
from planish.hlo.edits.drop_channels import DropChannels
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.factor import Factor
from planish.hlo.edits.fold import Fold
from planish.hlo.edits.freeze import Freeze
from planish.hlo.edits.hoist import Hoist
from planish.hlo.edits.lower import Lower
from planish.hlo.edits.narrow import Narrow
from planish.hlo.edits.operation_edits import CopyOp, DeleteOp, MoveOp, SwapOps
from planish.hlo.edits.quantize import Quantize
from planish.hlo.edits.relayout import Relayout
from planish.hlo.edits.replace_reduction import ReplaceReduction
from planish.hlo.edits.share import Share
from planish.hlo.edits.shorten import Shorten
from planish.hlo.edits.shrink import Shrink
from planish.hlo.edits.sink import Sink
from planish.hlo.edits.tile_batch import TileBatch

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
        TileBatch,
        Lower,
        Fold,
        Relayout,
        Sink,
        Hoist,
        Share,
        Shrink,
        Narrow,
        Quantize,
        DropChannels,
        Factor,
        Shorten,
        Freeze,
        ReplaceReduction,
    )
}
"""Name to class of every edit."""
