"""Whole modules made smaller function by function, each by a pass list of its own."""

from planish.llvm.modules.export import SizeRow, compare_measures, export_improved
from planish.llvm.modules.forked_work import reading_directive_of
from planish.llvm.modules.improve import Smaller, improve_module, make_smaller
from planish.llvm.modules.module_result import FunctionGain, Improved, Memory, ModuleProgress, ModuleRecipe
from planish.llvm.modules.unoptimised import read_for_size

__all__ = [
    "FunctionGain",
    "Improved",
    "Memory",
    "ModuleProgress",
    "ModuleRecipe",
    "SizeRow",
    "Smaller",
    "compare_measures",
    "export_improved",
    "improve_module",
    "make_smaller",
    "read_for_size",
    "reading_directive_of",
]
