"""A back end by LLVM's C API."""

from __future__ import annotations

from ctypes import byref, c_void_p

from planish.core import PlanishError
from planish.llvm.backend.capi.context import Context
from planish.llvm.backend.capi.llvm_session import LlvmSession
from planish.llvm.backend.capi.module import CModule
from planish.llvm.backend.capi.target_machine import TargetMachine
from planish.llvm.backend.protocol import PassError
from planish.llvm.backend.reader_errors import invalid, unreadable
from planish.llvm.backend.target_line import target_line


class CBackend:
    """A back end that runs every textual pipeline; see the protocol `Backend`.

    Args:
        name: `libllvm` or `llvmlite`.
        session: the LLVM that it stands on.
        lifetime: evaluations after which a process should be replaced; None: never.
    """

    full = True

    def __init__(self, name: str, session: LlvmSession, lifetime: int | None) -> None:
        self.name = name
        self.lifetime = lifetime
        self._session = session

    @property
    def version(self) -> str:
        return self._session.version

    def runs(self, pipeline: str) -> bool:
        module = self.parse("")
        try:
            module.run(pipeline)
        except PassError:
            return False
        finally:
            module.close()
        return True

    def parse(self, ir: str | bytes, name: str = "module") -> CModule:
        data = _bytes(ir) if isinstance(ir, str) else ir
        context = Context(self._session.functions, self._session.diagnostics)
        try:
            handle = self._read(context, data, name)
            module = CModule(self._session, context, handle, self._aim(handle))
            # The reader accepts modules that break LLVM's rules; passes rely on them.
            if told := module.verify():
                raise invalid(name, data, told, self.version)
        except PlanishError:
            context.release()  # which frees what is in it, too
            raise
        return module

    def _read(self, context: Context, data: bytes, name: str) -> int:
        functions, handle, message = self._session.functions, c_void_p(), c_void_p()
        # Before it is read: alignments that the text leaves out come from the data layout.
        line = target_line(data, self._session.machines.text)
        whole = line + data
        buffer = functions.LLVMCreateMemoryBufferWithMemoryRangeCopy(whole, len(whole), _bytes(name))
        if functions.LLVMParseIRInContext(context.handle, buffer, byref(handle), byref(message)):
            reported = "; ".join(self._session.diagnostics.taken())
            said = functions.take(message) or reported
            raise unreadable(name, data, said, self.version, bool(line))
        return handle.value or 0

    def _aim(self, handle: int) -> TargetMachine:
        functions = self._session.functions
        triple: bytes = functions.LLVMGetTarget(handle)
        machine = self._session.machines.of(triple)
        if not triple:
            functions.LLVMSetTarget(handle, machine.triple)
        if not functions.LLVMGetDataLayoutStr(handle):
            functions.LLVMSetModuleDataLayout(handle, machine.layout)
        return machine


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
