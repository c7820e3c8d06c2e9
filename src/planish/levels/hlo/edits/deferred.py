"""Edited modules: the edits of a patch made and verified, with the rewrites that are deferred until the end.

Edits name operations as they are with all channels, all pixels and the whole batch. So `DropChannels`,
`Shrink` and `TileBatch` only note in the draft what they want, and the function is rewritten here, in this
order.
"""

from __future__ import annotations

from collections.abc import Sequence

from planish.levels.hlo.edits.draft import Draft, verify
from planish.levels.hlo.edits.drop_channels import channels_of, cut_channels
from planish.levels.hlo.edits.edit import Edit
from planish.levels.hlo.edits.shrink import shrink_value
from planish.levels.hlo.edits.tile_batch import tile_function
from planish.levels.hlo.ir.mlir import UID, ir, set_uid, uid_of, walk
from planish.levels.hlo.ir.normal import canonical_hash


def applied(draft: Draft, edits: Sequence[Edit]) -> Draft:
    """Apply edits to a copy of a module.

    Args:
        draft: the module; it is not changed.
        edits: in order.

    Raises:
        ScheduleError: an edit is not legal where it comes, or the module is in the end not valid, or cannot
            be tiled or cut as it should be.
    """
    changed = draft.clone()
    for edit in edits:
        edit.apply(changed)
    verify(changed.root)
    if changed.tiles or changed.samplings or changed.channels:
        verify(finished(changed))
    return changed


def finished(draft: Draft) -> ir.Operation:
    """Return the module that is run, not to be changed: the draft's own, or a new one."""
    root = _reduced(draft)
    return tile_function(root, draft.function, draft.tiles) if draft.tiles else root


def identity_of(draft: Draft) -> str:
    """Name what a verified module computes, and in what tiles."""
    if not draft.identity:
        tiles = f" in {draft.tiles}" if draft.tiles else ""
        draft.identity = canonical_hash(_reduced(draft)) + tiles
    return draft.identity


def _reduced(draft: Draft) -> ir.Operation:
    """Return the module with the channels and pixels that are left of it."""
    if not draft.channels and not draft.samplings:
        return draft.root
    copy = draft.clone()
    # All operations and values are looked up before anything is put between them.
    kept = [(channels_of(copy.op(uid)), keep) for uid, keep in sorted(draft.channels.items())]
    sampled = [(copy.value(name), sampling) for name, sampling in sorted(draft.samplings.items())]
    cut_channels(copy.body, kept)
    for value, sampling in sampled:
        shrink_value(copy.body, value, sampling)
    for number, op in enumerate(walk(copy.body.owner.operation)[1:]):
        set_uid(op, f"{uid_of(op)}.{number}" if UID in op.attributes else f"new.{number}")
    verify(copy.root)
    return copy.root
