"""Edits that the structure of a module suggests: its batch in tiles, and each block left out."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import ScheduleError
from planish.hlo.blocks import blocks
from planish.hlo.edits import Draft, Edit, TileBatch

TILES = (2, 5, 10, 20)
"""Numbers of tiles; what lies between is for mutations."""

BLOCKS = 20
"""Those that compute most, alone."""


def structural(draft: Draft, kinds: Sequence[str] = ()) -> list[Edit]:
    """List the edits that are worth a measurement each, whatever a search finds.

    Args:
        draft: the unchanged module.
        kinds: names of the edits that may be made; all when empty.
    """
    tiles = _tiles(draft) if not kinds or "TileBatch" in kinds else []
    # Those who draw the paper's edits alone draw them as the paper does.
    return [*tiles, *([] if kinds else (block.bypass for block in blocks(draft)[:BLOCKS]))]


def _tiles(draft: Draft) -> list[TileBatch]:
    try:
        batch = draft.batch()
    except ScheduleError:
        return []
    sizes = {-(-batch // tiles): None for tiles in TILES}
    return [TileBatch(size) for size in sizes if size < batch]
