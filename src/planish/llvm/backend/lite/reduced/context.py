"""Contexts that outlive their modules."""

from __future__ import annotations

import llvmlite.binding as llvm

_OPEN: set[Context] = set()


class Context:
    """A context, closed with the last module in it.

    It is kept from Python's collector, which may end a context before the modules in it.
    """

    def __init__(self) -> None:
        self.ref = llvm.create_context()
        self._modules = 1
        _OPEN.add(self)

    def share(self) -> Context:
        """Count one module more."""
        self._modules += 1
        return self

    def release(self) -> None:
        """Count one module less."""
        self._modules -= 1
        if not self._modules:
            _OPEN.remove(self)
            self.ref.close()
