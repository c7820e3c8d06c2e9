"""Optimisation of whole modules for size: what is inlined, and a pass list for each function."""

from planish.levels.llvm.modules.module_search import SearchedModule, make_smaller
from planish.levels.llvm.modules.results import Memory, ModuleRecipe
from planish.levels.llvm.modules.transform import reading_directive_of

__all__ = ["Memory", "ModuleRecipe", "SearchedModule", "make_smaller", "reading_directive_of"]
