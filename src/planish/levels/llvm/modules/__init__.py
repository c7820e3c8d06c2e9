"""Optimisation of whole modules for size: a pass list for each function."""

from planish.levels.llvm.modules.export import SizeRow, compare_measures, export_improved
from planish.levels.llvm.modules.module_search import SearchedModule, improve_module, make_smaller
from planish.levels.llvm.modules.results import FunctionGain, Memory, ModuleProgress, ModuleRecipe, SizeResult
from planish.levels.llvm.modules.transform import reading_directive_of
from planish.levels.llvm.source import read_for_size

__all__ = [
    "FunctionGain",
    "Memory",
    "ModuleProgress",
    "ModuleRecipe",
    "SearchedModule",
    "SizeResult",
    "SizeRow",
    "compare_measures",
    "export_improved",
    "improve_module",
    "make_smaller",
    "read_for_size",
    "reading_directive_of",
]
