"""Edits that the structure of a module suggests: its batch in tiles, each block left out, fewer pixels.

Of a step of training also a larger learning rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.core import ScheduleError
from planish.hlo.edits import Draft, Edit, Shrink, TileBatch, shrinks
from planish.hlo.learning_rates import larger_steps
from planish.hlo.network_blocks import blocks

TILES = (2, 5, 10, 20)
"""Numbers of tiles; what lies between is for mutations."""

BLOCKS = 20
"""Those that compute most, alone."""

TOGETHER = 10
"""The number of tiles that is combined with other edits."""

CROPS = 1
"""Those that cut least, to be combined with each block left out."""


def structural(draft: Draft, kinds: Sequence[str] = ()) -> list[Edit]:
    """List the edits that are worth a measurement each, whatever a search finds.

    Args:
        draft: the unchanged module.
        kinds: names of the edits that may be made; all when empty.
    """
    tiles = _tiles(draft) if not kinds or "TileBatch" in kinds else []
    # Those who draw the paper's edits alone draw them as the paper does.
    if kinds:
        return [*tiles, *(cropped(draft) if "Shrink" in kinds else ())]
    return [*tiles, *(block.bypass for block in blocks(draft)[:BLOCKS]), *cropped(draft)]


def combined(draft: Draft) -> Iterator[Sequence[Edit]]:
    """List patches of what is worth most together: few pixels cut off, a block left out, and tiles.

    Of those none stands in another's way, and each saves a part of what the others leave. So they are worth a
    measurement before chance puts them together. A larger learning rate of all parameters comes first.
    """
    yield from larger_steps(draft)
    tiles = [tile for tile in _tiles(draft) if tile.examples == -(-draft.batch() // TOGETHER)]
    for crop in cropped(draft)[:CROPS]:
        if tiles:
            yield *tiles, crop
        for block in blocks(draft)[:BLOCKS]:
            yield *tiles, block.bypass, crop


def cropped(draft: Draft) -> list[Shrink]:
    """List crops of the pictures that a function is given, those that cut least first."""
    return [edit for edit in shrinks(draft) if edit.value.startswith("arg") and edit.stride == 1]


def _tiles(draft: Draft) -> list[TileBatch]:
    try:
        batch = draft.batch()
    except ScheduleError:
        return []
    sizes = {-(-batch // tiles): None for tiles in TILES}
    return [TileBatch(size) for size in sizes if size < batch]
