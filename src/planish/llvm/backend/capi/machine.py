"""Target machines: what LLVM knows of a processor, for its cost models and its code generator."""

from __future__ import annotations

import re
from ctypes import byref, c_void_p
from dataclasses import dataclass

from planish.core import TargetError
from planish.llvm.backend.capi.functions import Functions
from planish.llvm.backend.capi.signatures import TARGET_PARTS

_TARGETS = {
    r"x86_64|amd64|i[3-9]86": "X86",
    r"aarch64.*|arm64.*": "AArch64",
    r"arm.*|thumb.*": "ARM",
    r"riscv.*": "RISCV",
    r"powerpc.*|ppc.*": "PowerPC",
    r"s390x|systemz": "SystemZ",
    r"loongarch.*": "LoongArch",
    r"mips.*": "Mips",
    r"sparc.*": "Sparc",
    r"wasm.*": "WebAssembly",
}
_DEFAULT_LEVEL, _PIC, _DEFAULT_CODE_MODEL = 2, 2, 0  # LLVMCodeGenLevelDefault, LLVMRelocPIC, ...


@dataclass(frozen=True)
class Machine:
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
        self._made: dict[bytes, Machine] = {}
        self.host = functions.take(functions.LLVMGetDefaultTargetTriple()).encode()

    def of(self, triple: bytes) -> Machine:
        """Give the machine of a triple; an empty one means this host.

        The processor is the default one of the architecture, as clang takes it: `x86-64`, else generic.

        Raises:
            TargetError: this LLVM makes no code for it.
        """
        triple = triple or self.host
        if triple not in self._made:
            self._made[triple] = self._make(triple)
        return self._made[triple]

    def _make(self, triple: bytes) -> Machine:
        functions, target, why = self._functions, c_void_p(), c_void_p()
        self._make_known(triple.decode().partition("-")[0])
        if functions.LLVMGetTargetFromTriple(triple, byref(target), byref(why)):
            raise TargetError(f"LLVM makes no code for {triple.decode()}: {functions.take(why)}")
        handle = functions.LLVMCreateTargetMachine(
            target, triple, processor(triple), b"", _DEFAULT_LEVEL, _PIC, _DEFAULT_CODE_MODEL
        )
        layout = functions.LLVMCreateTargetDataLayout(handle)
        text = functions.take(functions.LLVMCopyStringRepOfTargetData(layout)).encode()
        return Machine(triple, handle, layout, text)

    def _make_known(self, architecture: str) -> None:
        for pattern, target in _TARGETS.items():
            if re.fullmatch(pattern, architecture):
                for part in TARGET_PARTS:
                    initialise = f"LLVMInitialize{target}{part}"
                    if self._functions.has(initialise):
                        self._functions.bind(initialise, (None,))()


def processor(triple: bytes) -> bytes:
    """Name the processor that code is made for by default."""
    return b"x86-64" if triple.startswith((b"x86_64", b"amd64")) else b"generic"
