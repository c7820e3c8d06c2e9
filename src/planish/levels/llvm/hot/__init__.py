"""Optimisation of whole programs for run time: a pass list for each function in which they spend it."""

from planish.levels.llvm.hot.search import (
    HotFunction,
    HotProgress,
    RuntimeResult,
    export_program,
    manifest,
    optimize_runtime,
)
from planish.levels.llvm.hot.versions import HotBuild

__all__ = [
    "HotBuild",
    "HotFunction",
    "HotProgress",
    "RuntimeResult",
    "export_program",
    "manifest",
    "optimize_runtime",
]
