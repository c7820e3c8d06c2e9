"""The LLVM inside llvmlite's wheel: whole where it can be reached, else what llvmlite offers of it."""

from planish.llvm.backend.lite.open import open_llvmlite
from planish.llvm.backend.lite.reach import reach
from planish.llvm.backend.lite.wheel import Wheel, find

__all__ = ["Wheel", "find", "open_llvmlite", "reach"]
