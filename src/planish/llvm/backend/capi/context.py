"""Contexts: where modules and their types live, and where LLVM reports what is wrong."""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_void_p, cast

from planish.llvm.backend.capi.bindings import Functions

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
        """Give the errors since the last time."""
        errors, self._errors = self._errors, []
        return errors

    def _report(self, info: int, _: int | None) -> None:
        if self._functions.LLVMGetDiagInfoSeverity(info) == _ERROR:
            # The lines after the first quote the code.
            told = self._functions.take(self._functions.LLVMGetDiagInfoDescription(info))
            self._errors.append(told.partition("\n")[0])


class Context:
    """A context, freed with the last module in it.

    Args:
        functions: LLVM's.
        diagnostics: takes the reports.
    """

    def __init__(self, functions: Functions, diagnostics: Diagnostics) -> None:
        self._functions = functions
        self._modules = 1
        self.handle: int = functions.LLVMContextCreate()
        diagnostics.watch(self.handle)

    def share(self) -> Context:
        """Count one module more."""
        self._modules += 1
        return self

    def release(self) -> None:
        """Count one module less."""
        self._modules -= 1
        if not self._modules:
            self._functions.LLVMContextDispose(self.handle)
