"""Protocol of bindings to LLVM, base class of their modules, and the errors that they raise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, Self

from planish.core import PlanishError, ProgramError
from planish.levels.llvm.bindings.elf import code_bytes


class IRError(ProgramError):
    """The IR cannot be read; the message has the line and column."""


class PassError(PlanishError):
    """LLVM refuses a pipeline: an unknown pass, a bad parameter, a wrong nesting."""

    exit_code = 3


class SharedContext(ABC):
    """A context of LLVM, freed with the last module in it."""

    def __init__(self) -> None:
        self._modules = 1

    def share(self) -> Self:
        """Count one module more."""
        self._modules += 1
        return self

    def release(self) -> None:
        """Count one module less."""
        self._modules -= 1
        if not self._modules:
            self.free()

    @abstractmethod
    def free(self) -> None:
        """Free the context."""


class Module(ABC):
    """An LLVM module, in a context of its own that its clones share.

    Args:
        handle: of the bindings.
        context: its own and its clones'; it has been counted there.
    """

    def __init__(self, handle: Any, context: SharedContext) -> None:
        self._open: Any = handle
        self._context = context

    @property
    def _handle(self) -> Any:
        if self._open is None:
            raise ValueError("the module is closed")
        return self._open

    @abstractmethod
    def clone(self) -> Self:
        """Copy the module; closing the copy leaves this one as it is."""

    @abstractmethod
    def run(self, pipeline: str) -> None:
        """Transform the module in place.

        Args:
            pipeline: as `opt -passes=` takes it, with explicit nesting; empty does nothing.

        Raises:
            PassError: LLVM returns an error. Some errors end the process instead.
        """

    @abstractmethod
    def verify(self) -> str:
        """Return the errors of LLVM's verifier; empty if there are none."""

    @abstractmethod
    def instructions(self) -> int:
        """Count the instructions of all definitions.

        Calls of lifetime, debug, assume and noalias-scope intrinsics do not count: they make no code.
        """

    def text_bytes(self) -> int:
        """Compile, and add up the sizes of all `.text*` sections; raises as `object_code` does."""
        return code_bytes(self.object_code())

    @abstractmethod
    def object_code(self) -> bytes:
        """Compile to a relocatable object; the module stays as it is.

        The code is position-independent, for the default processor of the module's target.

        Raises:
            IRError: the code generator refuses it, as for wrong inline assembly.
        """

    @abstractmethod
    def bitcode(self) -> bytes:
        """Write the module as bitcode."""

    @abstractmethod
    def text(self) -> str:
        """Print the module."""

    def close(self) -> None:
        """Free the module, and its context with the last module in it; harmless when called twice."""
        if self._open is not None:
            self._dispose(self._open)
            self._open = None
            self._context.release()

    @abstractmethod
    def _dispose(self, handle: Any) -> None: ...


class Bindings(Protocol):
    """One LLVM in this process, for one thread at a time."""

    @property
    def name(self) -> str:
        """Return the name by which `open_bindings` opens it: `libllvm`, `llvmlite` or `llvmlite-reduced`."""
        ...

    @property
    def version(self) -> str:
        """LLVM's version: "22.1.8"."""
        ...

    @property
    def full(self) -> bool:
        """Return whether it runs every textual pipeline; otherwise only what `runs` says."""
        ...

    @property
    def lifetime(self) -> int | None:
        """After how many evaluations a process should be replaced, because LLVM leaks; None: never."""
        ...

    def runs(self, pipeline: str) -> bool:
        """Return whether it can run a pipeline; asked once for each element of the catalogue."""
        ...

    def parse(self, ir: str | bytes, name: str = "module") -> Module:
        """Read a module from text or bitcode, in a new context.

        Args:
            ir: text, or bitcode's bytes.
            name: what errors call it; a file's path.

        Returns:
            The module. Where it lacks a target triple or data layout, it has this host's.

        Raises:
            IRError: it is malformed, invalid, or of a newer LLVM.
            TargetError: this LLVM knows nothing of its target.
        """
        ...
