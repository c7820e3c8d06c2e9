"""Counting instructions: those that make code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ctypes import c_uint, c_void_p

from planish.llvm.backend.capi.bindings import Functions
from planish.llvm.backend.capi.signatures import COUNT, COUNT_OF_ONE

_UNCOUNTED = (
    b"llvm.lifetime.start",
    b"llvm.lifetime.end",
    b"llvm.assume",
    b"llvm.experimental.noalias.scope.decl",
)


class InstructionCounter:
    """Counts the instructions of modules.

    LLVM counts all but debug intrinsics, in one call. The calls that make no code are then taken away:
    an intrinsic is only ever called, so each use of its declaration is one such call.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._all = functions.bind(COUNT, (c_uint, c_void_p))
        self._of_one = functions.bind(COUNT_OF_ONE, (c_uint, c_void_p))
        self._uncounted = {functions.LLVMLookupIntrinsicID(name, len(name)) for name in _UNCOUNTED}

    def __call__(self, module: int) -> int:
        """Count the instructions of a module's definitions."""
        return self._all(module) - sum(1 for _ in self._calls(module))

    def of_each(self, module: int, definitions: Iterable[int]) -> dict[int, int]:
        """Count the instructions of each of some definitions of a module."""
        found = {handle: self._of_one(handle) for handle in definitions}
        for use in self._calls(module):
            block = self._functions.LLVMGetInstructionParent(self._functions.LLVMGetUser(use))
            function: int = self._functions.LLVMGetBasicBlockParent(block)
            if function in found:
                found[function] -= 1
        return found

    def _calls(self, module: int) -> Iterator[int]:
        """Give the uses that are calls of what makes no code."""
        functions = self._functions
        function = functions.LLVMGetFirstFunction(module)
        while function:
            if functions.LLVMGetIntrinsicID(function) in self._uncounted:
                use = functions.LLVMGetFirstUse(function)
                while use:
                    yield use
                    use = functions.LLVMGetNextUse(use)
            function = functions.LLVMGetNextFunction(function)
