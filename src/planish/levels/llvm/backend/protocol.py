"""Protocols of a back end and its modules, and the errors that they raise."""

from __future__ import annotations

from typing import Protocol

from planish.core import PlanishError, ProgramError


class IRError(ProgramError):
    """The IR cannot be read; the message has the line and column."""


class PassError(PlanishError):
    """LLVM refuses a pipeline: an unknown pass, a bad parameter, a wrong nesting."""

    exit_code = 3


class Module(Protocol):
    """An LLVM module, in a context of its own that its clones share."""

    def clone(self) -> Module:
        """Copy the module; closing the copy leaves this one as it is."""
        ...

    def run(self, pipeline: str) -> None:
        """Transform the module in place.

        Args:
            pipeline: as `opt -passes=` takes it, with explicit nesting; empty does nothing.

        Raises:
            PassError: LLVM returns an error. Some errors end the process instead.
        """
        ...

    def verify(self) -> str:
        """Return what LLVM's verifier objects to; empty when nothing."""
        ...

    def instructions(self) -> int:
        """Count the instructions of all definitions.

        Calls of lifetime, debug, assume and noalias-scope intrinsics do not count: they make no code.
        """
        ...

    def text_bytes(self) -> int:
        """Compile, and add up the sizes of all `.text*` sections; raises as `object_code` does."""
        ...

    def object_code(self) -> bytes:
        """Compile to a relocatable object; the module stays as it is.

        The code is position-independent, for the default processor of the module's target.

        Raises:
            IRError: the code generator refuses it, as for wrong inline assembly.
        """
        ...

    def bitcode(self) -> bytes:
        """Write the module as bitcode."""
        ...

    def text(self) -> str:
        """Print the module."""
        ...

    def close(self) -> None:
        """Free the module, and its context with the last module in it; harmless when called twice."""
        ...


class Backend(Protocol):
    """One LLVM in this process, for one thread at a time."""

    @property
    def name(self) -> str:
        """Return what `open_backend` gives this one for: `libllvm`, `llvmlite` or `llvmlite-reduced`."""
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
