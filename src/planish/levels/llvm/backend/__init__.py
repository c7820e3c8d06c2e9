"""Running LLVM in this process: by its own shared library, or by the one inside llvmlite."""

from planish.levels.llvm.backend.find import available, facts, open_backend, usable_backend
from planish.levels.llvm.backend.protocol import Backend, IRError, Module, PassError

__all__ = [
    "Backend",
    "IRError",
    "Module",
    "PassError",
    "available",
    "facts",
    "open_backend",
    "usable_backend",
]
