"""Edited modules: the edits of a patch made and verified, with the rewrites that are deferred until the end.

Edits name operations as they are with all channels, all pixels and the whole batch. So `DropChannels`,
`Shrink` and `TileBatch` only note in the module what they want, and the function is rewritten here, in this
order.
"""

from __future__ import annotations

from collections.abc import Sequence

from planish.levels.hlo.edits.drop_channels import channels_of, cut_channels
from planish.levels.hlo.edits.edit import Edit
from planish.levels.hlo.edits.editable import EditableModule, verify
from planish.levels.hlo.edits.shrink import shrink_value
from planish.levels.hlo.edits.tile_batch import tile_function
from planish.levels.hlo.ir.mlir import UID, ir, set_uid, uid_of, walk
from planish.levels.hlo.ir.normal import canonical_hash


def applied(module: EditableModule, edits: Sequence[Edit]) -> EditableModule:
    """Apply edits to a copy of a module.

    Raises:
        ScheduleError: an edit is not legal where it comes, or the module is in the end not valid, or cannot
            be tiled or cut as it should be.
    """
    changed = module.clone()
    for edit in edits:
        edit.apply(changed)
    verify(changed.root)
    if changed.tiles or changed.subsamplings or changed.channels:
        verify(finished(changed))
    return changed


def finished(module: EditableModule) -> ir.Operation:
    """Return the module that is run, not to be changed: the module's own, or a new one."""
    root = _reduced(module)
    return tile_function(root, module.function, module.tiles) if module.tiles else root


def identity_of(module: EditableModule) -> str:
    """Name what a verified module computes, and in what tiles."""
    if not module.identity:
        tiles = f" in {module.tiles}" if module.tiles else ""
        module.identity = canonical_hash(_reduced(module)) + tiles
    return module.identity


def _reduced(module: EditableModule) -> ir.Operation:
    """Return the module with the channels and pixels that are left of it."""
    if not module.channels and not module.subsamplings:
        return module.root
    copy = module.clone()
    # All operations and values are looked up before anything is put between them.
    kept = [(channels_of(copy.op(uid)), keep) for uid, keep in sorted(module.channels.items())]
    sampled = [(copy.value(name), subsampling) for name, subsampling in sorted(module.subsamplings.items())]
    cut_channels(copy.body, kept)
    for value, subsampling in sampled:
        shrink_value(copy.body, value, subsampling)
    for number, op in enumerate(walk(copy.body.owner.operation)[1:]):
        set_uid(op, f"{uid_of(op)}.{number}" if UID in op.attributes else f"new.{number}")
    verify(copy.root)
    return copy.root
