"""Target machines: what LLVM knows of a processor, for its cost models and its code generator."""

from __future__ import annotations

import re
from ctypes import byref, c_void_p
from dataclasses import dataclass

from planish.core import TargetError
from planish.llvm.backend.capi.bindings import Functions
from planish.llvm.backend.capi.signatures import TARGETS, initialisers
from planish.llvm.backend.target_line import processor

_DEFAULT_LEVEL, _PIC, _DEFAULT_CODE_MODEL = 2, 2, 0  # LLVMCodeGenLevelDefault, LLVMRelocPIC, ...


@dataclass(frozen=True)
class TargetMachine:
    """A target machine and its data layout; both live as long as the process.

    Args:
        triple: what it was made for: `x86_64-pc-linux-gnu`.
        handle: LLVM's, of the machine.
        layout: LLVM's, of its data layout.
        layout_text: the data layout as in IR.
    """

    triple: bytes
    handle: int
    layout: int
    layout_text: bytes


class Machines:
    """The target machines of one LLVM, by triple; each is made once."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._made: dict[bytes, TargetMachine] = {}
        self.host = functions.take(functions.LLVMGetDefaultTargetTriple()).encode()

    def of(self, triple: bytes) -> TargetMachine:
        """Give the machine of a triple; an empty one means this host.

        Raises:
            TargetError: this LLVM makes no code for it.
        """
        triple = triple or self.host
        if triple not in self._made:
            self._made[triple] = self._make(triple)
        return self._made[triple]

    def text(self, triple: bytes) -> tuple[bytes, bytes]:
        """Give the triple and data layout as they stand in IR; raises as `of` does."""
        machine = self.of(triple)
        return machine.triple, machine.layout_text

    def _make(self, triple: bytes) -> TargetMachine:
        functions, target, why = self._functions, c_void_p(), c_void_p()
        self._make_known(triple.decode().partition("-")[0])
        if functions.LLVMGetTargetFromTriple(triple, byref(target), byref(why)):
            raise TargetError(f"LLVM makes no code for {triple.decode()}: {functions.take(why)}")
        handle = functions.LLVMCreateTargetMachine(
            target, triple, processor(triple), b"", _DEFAULT_LEVEL, _PIC, _DEFAULT_CODE_MODEL
        )
        layout = functions.LLVMCreateTargetDataLayout(handle)
        text = functions.take(functions.LLVMCopyStringRepOfTargetData(layout)).encode()
        return TargetMachine(triple, handle, layout, text)

    def _make_known(self, architecture: str) -> None:
        for pattern, target in TARGETS.items():
            if re.fullmatch(pattern, architecture):
                for name in filter(self._functions.has, initialisers(target)):
                    self._functions.bind(name, (None,))()
