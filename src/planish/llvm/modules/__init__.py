"""Optimisation of whole modules for size: a pass list for each function."""

from planish.llvm.modules.export import SizeRow, compare_measures, export_improved
from planish.llvm.modules.module_search import SearchedModule, improve_module, make_smaller
from planish.llvm.modules.results import FunctionGain, Memory, ModuleProgress, ModuleRecipe, SizeResult
from planish.llvm.modules.transform import reading_directive_of
from planish.llvm.source import read_for_size

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
