"""A back end whose modules fail, or print, as a test has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from planish.levels.llvm.backend.protocol import Backend, Module

Methods = dict[str, Callable[..., Any]]
"""Name of a method of modules to what is called in its place, with the module first."""


def faulty(backend: Backend, methods: Methods) -> Backend:
    """Return a back end that replaces methods of the modules that it parses, and of their copies."""
    return cast("Backend", _Faulty(backend, methods))


class _Faulty:
    def __init__(self, backend: Backend, methods: Methods) -> None:
        self._backend, self._methods = backend, methods

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def parse(self, text: str) -> Module:
        return self._replaced(self._backend.parse(text))

    def _replaced(self, module: Module) -> Module:
        kind: Any = type(module)

        def attribute(this: Module, name: str) -> Any:
            if name in self._methods:
                return partial(self._methods[name], this)
            found = kind.__getattribute__(this, name)
            return (lambda: self._replaced(found())) if name == "clone" else found

        module.__class__ = type(kind.__name__, (kind,), {"__getattribute__": attribute})
        return module
