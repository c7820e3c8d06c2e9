"""Real IR, for the tests here."""

from levels.llvm.functions.real import clang, real

__all__ = ["clang", "real"]
