"""Running a textual pipeline by `LLVMRunPasses`."""

from __future__ import annotations

from ctypes import c_char_p, c_void_p

from planish.llvm.backend.capi import Functions, Signatures

SIGNATURES: Signatures = {
    "LLVMCreatePassBuilderOptions": (c_void_p,),
    "LLVMRunPasses": (c_void_p, c_void_p, c_char_p, c_void_p, c_void_p),
}


class RunPasses:
    """Runs pipelines with the options that `opt` has by default."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._options: int = functions.LLVMCreatePassBuilderOptions()

    def run(self, module: int, machine: int, pipeline: str) -> str:
        """Transform a module; gives LLVM's error, or an empty text."""
        error = self._functions.LLVMRunPasses(module, pipeline.encode(), machine, self._options)
        return self._functions.take_error(error) if error else ""
