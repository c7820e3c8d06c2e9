"""Back end by LLVM's C API, wherever its functions are: contexts, target machines, modules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_uint, c_void_p, cast, string_at
from dataclasses import dataclass

from planish.core import PlanishError, TargetError
from planish.levels.llvm.bindings.c_api import (
    SET_OPTIONS,
    STRIP_DEBUG_INFO,
    TARGETS,
    Functions,
    initializers,
)
from planish.levels.llvm.bindings.c_definitions import Definitions, InstructionCounter
from planish.levels.llvm.bindings.protocol import IRError, Module, PassError, SharedContext
from planish.levels.llvm.bindings.reading import invalid, processor, target_line, unreadable

_ERROR = 0  # LLVMDSError
_Handler = CFUNCTYPE(None, c_void_p, c_void_p)


class Diagnostics:
    """Collects the errors that LLVM reports, which otherwise it prints, and some of which end the process."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._errors: list[str] = []
        # Kept here: LLVM has only its address, and Python would free it.
        self._handler = _Handler(self._report)

    def watch(self, context: int) -> None:
        """Take the reports of a context."""
        handler = cast(self._handler, c_void_p)
        self._functions.LLVMContextSetDiagnosticHandler(context, handler, None)

    def taken(self) -> list[str]:
        """Return the errors since the last time."""
        errors, self._errors = self._errors, []
        return errors

    def _report(self, info: int, _: int | None) -> None:
        if self._functions.LLVMGetDiagInfoSeverity(info) == _ERROR:
            # The lines after the first quote the code.
            description = self._functions.take(self._functions.LLVMGetDiagInfoDescription(info))
            self._errors.append(description.partition("\n")[0])


class Context(SharedContext):
    """A context, whose reports `diagnostics` takes."""

    def __init__(self, functions: Functions, diagnostics: Diagnostics) -> None:
        super().__init__()
        self._functions = functions
        self.handle: int = functions.LLVMContextCreate()
        diagnostics.watch(self.handle)

    def free(self) -> None:
        self._functions.LLVMContextDispose(self.handle)


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
        """Return the machine of a triple; an empty one means this host.

        Raises:
            TargetError: this LLVM makes no code for it.
        """
        triple = triple or self.host
        if triple not in self._made:
            self._made[triple] = self._make(triple)
        return self._made[triple]

    def text(self, triple: bytes) -> tuple[bytes, bytes]:
        """Return the triple and data layout as they are written in IR; raises as `of` does."""
        machine = self.of(triple)
        return machine.triple, machine.layout_text

    def _make(self, triple: bytes) -> TargetMachine:
        functions, target, why = self._functions, c_void_p(), c_void_p()
        architecture = triple.decode().partition("-")[0]
        for pattern, name in TARGETS.items():
            if re.fullmatch(pattern, architecture):
                for initialize in filter(functions.has, initializers(name)):
                    functions.bind(initialize, (None,))()
        if functions.LLVMGetTargetFromTriple(triple, byref(target), byref(why)):
            raise TargetError(f"LLVM makes no code for {triple.decode()}: {functions.take(why)}")
        handle = functions.LLVMCreateTargetMachine(
            target, triple, processor(triple), b"", _DEFAULT_LEVEL, _PIC, _DEFAULT_CODE_MODEL
        )
        layout = functions.LLVMCreateTargetDataLayout(handle)
        text = functions.take(functions.LLVMCopyStringRepOfTargetData(layout)).encode()
        return TargetMachine(triple, handle, layout, text)


RunPipeline = Callable[[int, int, str], str]
"""Runs a textual pipeline on a module, with a target machine; returns LLVM's error, or an empty text."""


class LlvmSession:
    """One LLVM at work.

    Args:
        functions: its C API.
        run_pipeline: what the two libraries do not share.
    """

    def __init__(self, functions: Functions, run_pipeline: RunPipeline) -> None:
        self.functions = functions
        self.run_pipeline = run_pipeline
        self.diagnostics = Diagnostics(functions)
        self.count = InstructionCounter(functions)
        self.machines = Machines(functions)
        self.version = version(functions)


def version(functions: Functions) -> str:
    """Return LLVM's version: "22.1.8"."""
    parts = c_uint(), c_uint(), c_uint()
    functions.LLVMGetVersion(*map(byref, parts))
    return ".".join(str(part.value) for part in parts)


_RETURN_STATUS = 2  # LLVMReturnStatusAction
_OBJECT_FILE = 1  # LLVMObjectFile


class CModule(Module):
    """A module of LLVM's C API; `session` is the LLVM that it lives in, `machine` its target's."""

    _context: Context

    def __init__(self, session: LlvmSession, context: Context, handle: int, machine: TargetMachine) -> None:
        super().__init__(handle, context)
        self._session = session
        self._functions = session.functions
        self._machine = machine

    def clone(self) -> CModule:
        handle = self._functions.LLVMCloneModule(self._handle)
        return CModule(self._session, self._context.share(), handle, self._machine)

    @property
    def triple(self) -> str:
        """Return its target's triple."""
        return self._machine.triple.decode()

    def definitions(self) -> Definitions:
        """Return the access to each of the functions that it defines."""
        return Definitions(self._functions, self._handle, self._context.handle, self._session.count)

    def run(self, pipeline: str) -> None:
        handle = self._handle
        if not pipeline:
            return
        message = self._session.run_pipeline(handle, self._machine.handle, pipeline)
        # Some passes only report an error, and say that all went well.
        if message or (message := "; ".join(self._session.diagnostics.taken())):
            raise PassError(f"LLVM refuses '{pipeline}': {message}")

    def strip_debug_info(self) -> None:
        """Remove the debug information; raises TargetError where this LLVM cannot."""
        self._functions.bind(STRIP_DEBUG_INFO, (c_int, c_void_p))(self._handle)

    def verify(self) -> str:
        message = c_void_p()
        broken = self._functions.LLVMVerifyModule(self._handle, _RETURN_STATUS, byref(message))
        violation = self._functions.take(message).strip()
        return (violation or "the module is broken") if broken else ""

    def instructions(self) -> int:
        return self._session.count(self._handle)

    def object_code(self) -> bytes:
        # The code generator changes the module that it compiles.
        copy = self._functions.LLVMCloneModule(self._handle)
        message, buffer = c_void_p(), c_void_p()
        try:
            failed = self._functions.LLVMTargetMachineEmitToMemoryBuffer(
                self._machine.handle, copy, _OBJECT_FILE, byref(message), byref(buffer)
            )
        finally:
            self._functions.LLVMDisposeModule(copy)
        error = self._functions.take(message)
        errors = self._session.diagnostics.taken()
        code = b"" if failed else self._taken(buffer)
        if failed or errors:
            raise IRError(f"LLVM makes no code of the module: {'; '.join(errors) or error}")
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

    def _dispose(self, handle: int) -> None:
        self._functions.LLVMDisposeModule(handle)


class CBindings:
    """Bindings that run every textual pipeline; see the protocol `Bindings`.

    Args:
        name: `libllvm` or `llvmlite`.
        session: the LLVM that it uses.
        lifetime: evaluations after which a process should be replaced; None: never.
    """

    full = True

    def __init__(self, name: str, session: LlvmSession, lifetime: int | None) -> None:
        self.name = name
        self.lifetime = lifetime
        self._session = session
        self._options: tuple[str, ...] = ()

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

    def set_options(self, options: Sequence[str]) -> None:
        """Set options of LLVM ("-disable-lsr") for all that this process does from now on.

        LLVM reads them once, and ends the process where it does not know one.

        Raises:
            PlanishError: the process has other options already.
            TargetError: this LLVM cannot set any.
        """
        if self._options == tuple(options):
            return
        if self._options:
            raise PlanishError("LLVM has other options in this process")
        words = [b"planish", *map(_bytes, options)]
        text = POINTER(c_char_p)
        parse = self._session.functions.bind(SET_OPTIONS, (None, c_int, text, c_char_p))
        parse(len(words), (c_char_p * len(words))(*words), b"")
        self._options = tuple(options)

    def parse(self, ir: str | bytes, name: str = "module") -> CModule:
        data = _bytes(ir) if isinstance(ir, str) else ir
        context = Context(self._session.functions, self._session.diagnostics)
        try:
            handle = self._read(context, data, name)
            module = CModule(self._session, context, handle, self._aim(handle))
            # The reader accepts modules that break LLVM's rules; passes rely on them.
            if violation := module.verify():
                raise invalid(name, data, violation, self.version)
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
