"""A module by LLVM's C API."""

from __future__ import annotations

from ctypes import byref, c_void_p, string_at
from typing import TYPE_CHECKING

from planish.llvm.backend.capi.context import Context
from planish.llvm.backend.capi.definitions import Definitions
from planish.llvm.backend.capi.target_machine import TargetMachine
from planish.llvm.backend.elf import code_bytes
from planish.llvm.backend.protocol import IRError, PassError

if TYPE_CHECKING:
    from planish.llvm.backend.capi.llvm_session import LlvmSession

_RETURN_STATUS = 2  # LLVMReturnStatusAction
_OBJECT_FILE = 1  # LLVMObjectFile


class CModule:
    """A module; see the protocol `Module`.

    Args:
        session: the LLVM that it lives in.
        context: its own and its clones'; it has been counted there.
        handle: LLVM's.
        machine: its target's.
    """

    def __init__(self, session: LlvmSession, context: Context, handle: int, machine: TargetMachine) -> None:
        self._session = session
        self._functions = session.functions
        self._context = context
        self._open: int | None = handle
        self._machine = machine

    @property
    def _handle(self) -> int:
        if self._open is None:
            raise ValueError("the module is closed")
        return self._open

    def clone(self) -> CModule:
        handle = self._functions.LLVMCloneModule(self._handle)
        return CModule(self._session, self._context.share(), handle, self._machine)

    def definitions(self) -> Definitions:
        """Give what treats the functions that it defines one by one."""
        return Definitions(self._functions, self._handle, self._context.handle, self._session.count)

    def run(self, pipeline: str) -> None:
        handle = self._handle
        if not pipeline:
            return
        message = self._session.pipelines.run(handle, self._machine.handle, pipeline)
        # Some passes only report an error, and say that all went well.
        if message or (message := "; ".join(self._session.diagnostics.taken())):
            raise PassError(f"LLVM refuses '{pipeline}': {message}")

    def verify(self) -> str:
        message = c_void_p()
        broken = self._functions.LLVMVerifyModule(self._handle, _RETURN_STATUS, byref(message))
        told = self._functions.take(message).strip()
        return (told or "the module is broken") if broken else ""

    def instructions(self) -> int:
        return self._session.count(self._handle)

    def text_bytes(self) -> int:
        return code_bytes(self.object_code())

    def object_code(self) -> bytes:
        # The code generator changes the module that it compiles.
        copy = self._functions.LLVMCloneModule(self._handle)
        try:
            return self._compile(copy)
        finally:
            self._functions.LLVMDisposeModule(copy)

    def _compile(self, handle: int) -> bytes:
        message, buffer = c_void_p(), c_void_p()
        failed = self._functions.LLVMTargetMachineEmitToMemoryBuffer(
            self._machine.handle, handle, _OBJECT_FILE, byref(message), byref(buffer)
        )
        told = self._functions.take(message)
        errors = self._session.diagnostics.taken()
        code = b"" if failed else self._taken(buffer)
        if failed or errors:
            raise IRError(f"LLVM makes no code of the module: {'; '.join(errors) or told}")
        return code

    def bitcode(self) -> bytes:
        return self._taken(self._functions.LLVMWriteBitcodeToMemoryBuffer(self._handle))

    def _taken(self, buffer: c_void_p | int) -> bytes:
        functions = self._functions
        try:
            return string_at(functions.LLVMGetBufferStart(buffer), functions.LLVMGetBufferSize(buffer))
        finally:
            functions.LLVMDisposeMemoryBuffer(buffer)

    def text(self) -> str:
        return self._functions.take(self._functions.LLVMPrintModuleToString(self._handle))

    def close(self) -> None:
        if self._open is not None:
            self._functions.LLVMDisposeModule(self._open)
            self._open = None
            self._context.release()
