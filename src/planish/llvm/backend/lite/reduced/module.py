"""A module by llvmlite's public interface."""

from __future__ import annotations

from typing import Any

from planish.llvm.backend.elf import code_bytes
from planish.llvm.backend.lite.reduced.context import Context
from planish.llvm.backend.lite.reduced.counting import count
from planish.llvm.backend.lite.reduced.elements import elements
from planish.llvm.backend.lite.reduced.reduced_run import run
from planish.llvm.backend.protocol import IRError


class ReducedModule:
    """A module; see the protocol `Module`.

    Args:
        module: llvmlite's.
        machine: llvmlite's, of the module's target.
        context: its own and its clones'; it has been counted there.
    """

    def __init__(self, module: Any, machine: Any, context: Context) -> None:
        self._open = module
        self._machine = machine
        self._context = context

    @property
    def _module(self) -> Any:
        if self._open is None:
            raise ValueError("the module is closed")
        return self._open

    def clone(self) -> ReducedModule:
        return ReducedModule(self._module.clone(), self._machine, self._context.share())

    def run(self, pipeline: str) -> None:
        run(self._module, self._machine, elements(pipeline))

    def verify(self) -> str:
        try:
            self._module.verify()
        except RuntimeError as error:
            return str(error).strip()
        return ""

    def instructions(self) -> int:
        return count(self.text())

    def text_bytes(self) -> int:
        return code_bytes(self.object_code())

    def object_code(self) -> bytes:
        # The code generator changes the module that it compiles.
        copy = self._module.clone()
        try:
            return self._machine.emit_object(copy)
        except RuntimeError as error:
            raise IRError(f"LLVM makes no code of the module: {error}") from error
        finally:
            copy.close()

    def bitcode(self) -> bytes:
        return self._module.as_bitcode()

    def text(self) -> str:
        return str(self._module)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None
            self._context.release()
