"""An edit that changes no answer: the batch is computed in tiles."""

from __future__ import annotations

from dataclasses import dataclass

from planish.core import ScheduleError
from planish.hlo.edits.edit import Edit
from planish.hlo.edits.module_draft import Draft
from planish.hlo.tiling import Tiles

TILES_MOST = 25
"""They are written out: compiling takes longer with each."""


@dataclass(frozen=True)
class TileBatch(Edit):
    """Compute so many examples of the batch at a time, so that what lies between layers stays in the caches.

    It is done when all else is edited, wherever it stands in a patch; of several the last counts. The paper
    has nothing like it. The answer stays, to rounding, since no operation of the function may mix examples;
    a module in which one does cannot be tiled (see `planish.hlo.tiling`).

    Args:
        examples: of one tile.
        loop: whether the tiles are a loop; else they are written out.
    """

    examples: int
    loop: bool = False

    def apply(self, draft: Draft) -> None:
        if self.examples < 1:
            raise ScheduleError(f"a tile has no {self.examples} examples", "Take 1 or more.")
        draft.tiles = Tiles(self.examples, self.loop)


def sizes(batch: int) -> list[int]:
    """List sizes of tiles that give 2 to `TILES_MOST` tiles, a different number each."""
    return sorted({-(-batch // tiles) for tiles in range(2, TILES_MOST + 1)} - {batch})
