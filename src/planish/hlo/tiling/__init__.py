"""Running a module's batch in tiles: each example is computed alone, so the answer stays what it was."""

from planish.hlo.tiling.batch_axes import Batch, batch_of
from planish.hlo.tiling.unrolled import tiled

__all__ = ["Batch", "batch_of", "tiled"]
