"""Real IR, for the tests here."""

from llvm.functions.real import clang, real

__all__ = ["clang", "real"]
