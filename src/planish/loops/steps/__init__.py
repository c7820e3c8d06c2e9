"""The steps of a schedule. Each checks its rule, so no illegal schedule can be built."""

from planish.loops.steps.marks import Pack, Parallel, Stage, Unroll
from planish.loops.steps.order import Fuse, Merge, Reorder, Split, Swap, Vectorize
from planish.loops.steps.step import LoopStep, apply

__all__ = [
    "Fuse",
    "LoopStep",
    "Merge",
    "Pack",
    "Parallel",
    "Reorder",
    "Split",
    "Stage",
    "Swap",
    "Unroll",
    "Vectorize",
    "apply",
]
