"""Whole modules made smaller function by function, each by a pass list of its own."""

from planish.llvm.modules.improve import improve_module
from planish.llvm.modules.result import FunctionGain, Improved, Memory, Progress, Recipe

__all__ = ["FunctionGain", "Improved", "Memory", "Progress", "Recipe", "improve_module"]
