"""Whole modules made smaller function by function, each by a pass list of its own."""

from planish.llvm.modules.export import Row, compare_measures, export_improved
from planish.llvm.modules.improve import improve_module
from planish.llvm.modules.reading import read_for_size
from planish.llvm.modules.result import FunctionGain, Improved, Memory, Progress, Recipe

__all__ = [
    "FunctionGain",
    "Improved",
    "Memory",
    "Progress",
    "Recipe",
    "Row",
    "compare_measures",
    "export_improved",
    "improve_module",
    "read_for_size",
]
