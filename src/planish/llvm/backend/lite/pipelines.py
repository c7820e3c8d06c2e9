"""Running a textual pipeline by llvmlite's pass builder and LLVM's own parser of pipelines."""

from __future__ import annotations

from ctypes import Structure, c_char_p, c_size_t, c_void_p
from typing import ClassVar

from planish.llvm.backend.capi import Functions, Signatures

# Error llvm::PassBuilder::parsePassPipeline(ModulePassManager &, StringRef)
_PARSE = (
    "_ZN4llvm11PassBuilder17parsePassPipelineERNS_11PassManager"
    "INS_6ModuleENS_15AnalysisManagerIS2_JEEEJEEENS_9StringRefE"
)
_CHECKED = 1  # a flag in the lowest bit of an llvm::Error


class _Error(Structure):
    # An llvm::Error is one pointer, but is returned in memory, as C++ has it for types with a destructor. Two
    # words more make ctypes return it there, too; nobody writes to them.
    _fields_: ClassVar = [("payload", c_void_p), ("padding", c_void_p * 2)]


SIGNATURES: Signatures = {
    _PARSE: (_Error, c_void_p, c_void_p, c_char_p, c_size_t),
    "LLVMPY_CreatePipelineTuningOptions": (c_void_p,),
    "LLVMPY_CreatePassBuilder": (c_void_p, c_void_p, c_void_p),
    "LLVMPY_DisposePassBuilder": (None, c_void_p),
    "LLVMPY_CreateNewModulePassManager": (c_void_p,),
    "LLVMPY_RunNewModulePassManager": (None, c_void_p, c_void_p, c_void_p),
    "LLVMPY_DisposeNewModulePassManger": (None, c_void_p),
}


class ParsePipelines:
    """Runs pipelines with the options that `opt` has by default.

    Every run has a pass builder of its own: a used one calls back what is gone.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._parse = functions.bind(_PARSE, SIGNATURES[_PARSE])
        self._options: int = functions.LLVMPY_CreatePipelineTuningOptions()

    def run(self, module: int, machine: int, pipeline: str) -> str:
        """Transform a module; gives LLVM's error, or an empty text."""
        functions = self._functions
        builder = functions.LLVMPY_CreatePassBuilder(machine, self._options)
        manager = functions.LLVMPY_CreateNewModulePassManager()
        try:
            text = pipeline.encode()
            # The flag is no part of the pointer, and success is no pointer.
            error = (self._parse(builder, manager, text, len(text)).payload or 0) & ~_CHECKED
            if error:
                return self._functions.take_error(error)
            functions.LLVMPY_RunNewModulePassManager(manager, module, builder)
        finally:
            functions.LLVMPY_DisposeNewModulePassManger(manager)
            functions.LLVMPY_DisposePassBuilder(builder)
        return ""
