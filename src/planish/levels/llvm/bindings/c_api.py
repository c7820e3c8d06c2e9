"""LLVM's C API: the signatures of its functions, and functions bound to their addresses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p, string_at
from typing import Any

from planish.core import TargetError

Signatures = Mapping[str, tuple[Any, ...]]
"""Name to (result, arguments...)."""

_text = c_void_p  # a string that the caller frees by LLVMDisposeMessage

COMMON: Signatures = {
    "LLVMGetVersion": (None, POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)),
    "LLVMDisposeMessage": (None, _text),
    "LLVMGetErrorMessage": (c_void_p, c_void_p),
    "LLVMDisposeErrorMessage": (None, c_void_p),
    "LLVMContextCreate": (c_void_p,),
    "LLVMContextDispose": (None, c_void_p),
    "LLVMContextSetDiagnosticHandler": (None, c_void_p, c_void_p, c_void_p),
    "LLVMGetDiagInfoDescription": (_text, c_void_p),
    "LLVMGetDiagInfoSeverity": (c_int, c_void_p),
    "LLVMCreateMemoryBufferWithMemoryRangeCopy": (c_void_p, c_char_p, c_size_t, c_char_p),
    "LLVMGetBufferStart": (c_void_p, c_void_p),
    "LLVMGetBufferSize": (c_size_t, c_void_p),
    "LLVMDisposeMemoryBuffer": (None, c_void_p),
    "LLVMParseIRInContext": (c_int, c_void_p, c_void_p, POINTER(c_void_p), POINTER(_text)),
    "LLVMCloneModule": (c_void_p, c_void_p),
    "LLVMDisposeModule": (None, c_void_p),
    "LLVMVerifyModule": (c_int, c_void_p, c_int, POINTER(_text)),
    "LLVMPrintModuleToString": (_text, c_void_p),
    "LLVMPrintValueToString": (_text, c_void_p),
    "LLVMWriteBitcodeToMemoryBuffer": (c_void_p, c_void_p),
    "LLVMGetTarget": (c_char_p, c_void_p),
    "LLVMSetTarget": (None, c_void_p, c_char_p),
    "LLVMGetDataLayoutStr": (c_char_p, c_void_p),
    "LLVMSetModuleDataLayout": (None, c_void_p, c_void_p),
    "LLVMGetDefaultTargetTriple": (_text,),
    "LLVMGetTargetFromTriple": (c_int, c_char_p, POINTER(c_void_p), POINTER(_text)),
    "LLVMCreateTargetMachine": (c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_int, c_int),
    "LLVMCreateTargetDataLayout": (c_void_p, c_void_p),
    "LLVMCopyStringRepOfTargetData": (_text, c_void_p),
    "LLVMTargetMachineEmitToMemoryBuffer": (
        c_int, c_void_p, c_void_p, c_int, POINTER(_text), POINTER(c_void_p),
    ),
    "LLVMGetFirstFunction": (c_void_p, c_void_p),
    "LLVMGetNextFunction": (c_void_p, c_void_p),
    "LLVMGetFirstGlobal": (c_void_p, c_void_p),
    "LLVMGetNextGlobal": (c_void_p, c_void_p),
    "LLVMGetValueName2": (c_void_p, c_void_p, POINTER(c_size_t)),
    "LLVMIsDeclaration": (c_int, c_void_p),
    "LLVMGetLinkage": (c_int, c_void_p),
    "LLVMSetLinkage": (None, c_void_p, c_int),
    "LLVMSetComdat": (None, c_void_p, c_void_p),
    "LLVMGetEnumAttributeKindForName": (c_uint, c_char_p, c_size_t),
    "LLVMGetEnumAttributeAtIndex": (c_void_p, c_void_p, c_uint, c_uint),
    "LLVMCreateEnumAttribute": (c_void_p, c_void_p, c_uint, c_uint64),
    "LLVMCreateStringAttribute": (c_void_p, c_void_p, c_char_p, c_uint, c_char_p, c_uint),
    "LLVMAddAttributeAtIndex": (None, c_void_p, c_uint, c_void_p),
    "LLVMRemoveEnumAttributeAtIndex": (None, c_void_p, c_uint, c_uint),
    "LLVMGetFirstGlobalAlias": (c_void_p, c_void_p),
    "LLVMGetNextGlobalAlias": (c_void_p, c_void_p),
    "LLVMAliasGetAliasee": (c_void_p, c_void_p),
    "LLVMGetFirstGlobalIFunc": (c_void_p, c_void_p),
    "LLVMGetNextGlobalIFunc": (c_void_p, c_void_p),
    "LLVMGetGlobalIFuncResolver": (c_void_p, c_void_p),
    "LLVMGetIntrinsicID": (c_uint, c_void_p),
    "LLVMLookupIntrinsicID": (c_uint, c_char_p, c_size_t),
    "LLVMGetFirstUse": (c_void_p, c_void_p),
    "LLVMGetNextUse": (c_void_p, c_void_p),
    "LLVMGetUser": (c_void_p, c_void_p),
    "LLVMIsACallInst": (c_void_p, c_void_p),
    "LLVMIsAInvokeInst": (c_void_p, c_void_p),
    "LLVMGetCalledValue": (c_void_p, c_void_p),
    "LLVMGetStringAttributeAtIndex": (c_void_p, c_void_p, c_uint, c_char_p, c_uint),
    "LLVMGetStringAttributeValue": (c_void_p, c_void_p, POINTER(c_uint)),
    "LLVMGetModuleFlag": (c_void_p, c_void_p, c_char_p, c_size_t),
    "LLVMGetInstructionParent": (c_void_p, c_void_p),
    "LLVMGetBasicBlockParent": (c_void_p, c_void_p),
}  # fmt: skip

COUNT = "_ZNK4llvm6Module19getInstructionCountEv"
"""`unsigned llvm::Module::getInstructionCount() const`: the C API has none, and to walk by it is slow."""

COUNT_OF_ONE = "_ZNK4llvm8Function19getInstructionCountEv"
"""`unsigned llvm::Function::getInstructionCount() const`."""

STRIP_DEBUG_INFO = "LLVMStripModuleDebugInfo"
"""It is bound where it is needed: another LLVM may lack it."""

SET_OPTIONS = "LLVMParseCommandLineOptions"
"""As above."""

TARGETS = {
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
    r"avr": "AVR",
    r"msp430": "MSP430",
}
"""A triple's first word to LLVM's name of the target."""


def initializers(target: str) -> list[str]:
    """List the functions that make a target known; they take nothing, and some targets lack some."""
    parts = "TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"
    return [f"LLVMInitialize{target}{part}" for part in parts]


NAMES = (
    frozenset(COMMON)
    | {COUNT, COUNT_OF_ONE, STRIP_DEBUG_INFO, SET_OPTIONS}
    | {name for target in TARGETS.values() for name in initializers(target)}
)
"""Every symbol that is looked for."""


Address = Callable[[str], int | None]
"""Finds a function by its symbol; None where there is none."""


class Functions:
    """The functions of one LLVM, each an attribute by its name.

    Args:
        where: the library that they are in, as errors name it.
        address: finds them.
        more: what is needed in addition to the common ones.

    Raises:
        TargetError: one is missing.
    """

    def __init__(self, where: str, address: Address, more: Signatures) -> None:
        self._where = where
        self._address = address
        for name, signature in {**COMMON, **more}.items():
            setattr(self, name, self.bind(name, signature))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"{name} is not among the functions that are bound")

    def bind(self, name: str, signature: tuple[Any, ...]) -> Callable[..., Any]:
        """Make a function callable that was not asked for at the start; raises as the class does."""
        address = self._address(name)
        if address is None:
            raise TargetError(f"{self._where} lacks the function {name}", "Use LLVM 18 or newer.")
        return CFUNCTYPE(*signature)(address)

    def has(self, name: str) -> bool:
        """Return whether there is a function of this name."""
        return self._address(name) is not None

    def take(self, text: c_void_p | int | None) -> str:
        """Read a string that LLVM made for us, and free it; an empty one for no address."""
        address = text.value if isinstance(text, c_void_p) else text
        if not address:
            return ""
        try:
            return string_at(address).decode("utf-8", "surrogateescape")
        finally:
            self.LLVMDisposeMessage(address)

    def take_error(self, error: int) -> str:
        """Read the message of an `LLVMErrorRef`, and free both."""
        text: int = self.LLVMGetErrorMessage(error)
        try:
            return string_at(text).decode("utf-8", "replace")
        finally:
            self.LLVMDisposeErrorMessage(text)
