"""Counting instructions: those that make code."""

from __future__ import annotations

from ctypes import c_uint, c_void_p

from planish.llvm.backend.capi.functions import Functions
from planish.llvm.backend.capi.signatures import COUNT

_UNCOUNTED = (
    b"llvm.lifetime.start",
    b"llvm.lifetime.end",
    b"llvm.assume",
    b"llvm.experimental.noalias.scope.decl",
)


class Counter:
    """Counts the instructions of modules.

    LLVM counts all but debug intrinsics, in one call. The calls that make no code are then taken away:
    an intrinsic is only ever called, so each use of its declaration is one such call.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._all = functions.bind(COUNT, (c_uint, c_void_p))
        self._uncounted = {functions.LLVMLookupIntrinsicID(name, len(name)) for name in _UNCOUNTED}

    def __call__(self, module: int) -> int:
        """Count the instructions of a module's definitions."""
        functions = self._functions
        count: int = self._all(module)
        function = functions.LLVMGetFirstFunction(module)
        while function:
            if functions.LLVMGetIntrinsicID(function) in self._uncounted:
                count -= self._uses(function)
            function = functions.LLVMGetNextFunction(function)
        return count

    def _uses(self, function: int) -> int:
        count, use = 0, self._functions.LLVMGetFirstUse(function)
        while use:
            count, use = count + 1, self._functions.LLVMGetNextUse(use)
        return count
