"""A back end whose modules fail, or print, as a test has them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from planish.levels.llvm.bindings.protocol import Bindings, Module

Methods = dict[str, Callable[..., Any]]
"""Name of a method of modules to what is called in its place, with the module first."""


def faulty(bindings: Bindings, methods: Methods) -> Bindings:
    """Return a back end that replaces methods of the modules that it parses, and of their copies."""
    return cast("Bindings", _Faulty(bindings, methods))


class _Faulty:
    def __init__(self, bindings: Bindings, methods: Methods) -> None:
        self._bindings, self._methods = bindings, methods

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bindings, name)

    def parse(self, text: str) -> Module:
        return self._replaced(self._bindings.parse(text))

    def _replaced(self, module: Module) -> Module:
        kind: Any = type(module)

        def attribute(this: Module, name: str) -> Any:
            if name in self._methods:
                return partial(self._methods[name], this)
            found = kind.__getattribute__(this, name)
            return (lambda: self._replaced(found())) if name == "clone" else found

        module.__class__ = type(kind.__name__, (kind,), {"__getattribute__": attribute})
        return module
