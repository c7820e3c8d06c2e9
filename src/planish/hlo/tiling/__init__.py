"""Running a module's batch in tiles: each example is computed alone, so the answer stays what it was."""

from planish.hlo.tiling.batch_axes import FunctionBatch, batch_of
from planish.hlo.tiling.in_tiles import Tiles, tiled

__all__ = ["FunctionBatch", "Tiles", "batch_of", "tiled"]
