"""LLVM's own shared library, as Linux distributions and Homebrew install it."""

from planish.llvm.backend.libllvm.load import VARIABLE, find, open_libllvm

__all__ = ["VARIABLE", "find", "open_libllvm"]
