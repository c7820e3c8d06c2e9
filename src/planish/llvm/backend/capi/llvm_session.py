"""One LLVM at work: its functions, and what is made once for all its modules."""

from __future__ import annotations

from ctypes import byref, c_uint
from typing import Protocol

from planish.llvm.backend.capi.bindings import Functions
from planish.llvm.backend.capi.context import Diagnostics
from planish.llvm.backend.capi.counting import InstructionCounter
from planish.llvm.backend.capi.target_machine import Machines


class Pipelines(Protocol):
    """Runs textual pipelines; what the two back ends do not share."""

    def run(self, module: int, machine: int, pipeline: str) -> str:
        """Transform a module; gives LLVM's error, or an empty text."""
        ...


class LlvmSession:
    """One LLVM at work.

    Args:
        functions: its C API.
        pipelines: how it runs a pipeline.
    """

    def __init__(self, functions: Functions, pipelines: Pipelines) -> None:
        self.functions = functions
        self.pipelines = pipelines
        self.diagnostics = Diagnostics(functions)
        self.count = InstructionCounter(functions)
        self.machines = Machines(functions)
        self.version = version(functions)


def version(functions: Functions) -> str:
    """Give LLVM's version: "22.1.8"."""
    parts = c_uint(), c_uint(), c_uint()
    functions.LLVMGetVersion(*map(byref, parts))
    return ".".join(str(part.value) for part in parts)
