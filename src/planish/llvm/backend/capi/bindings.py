"""Functions of LLVM, bound to their addresses."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, c_void_p, string_at
from typing import Any

from planish.core import TargetError
from planish.llvm.backend.capi.signatures import COMMON, Signatures

Address = Callable[[str], int | None]
"""Finds a function by its symbol; None where there is none."""


class Functions:
    """The functions of one LLVM, each an attribute by its name.

    Args:
        where: the library that they lie in, as errors name it.
        address: finds them.
        more: what is needed beside the common ones.

    Raises:
        TargetError: one is missing.
    """

    def __init__(self, where: str, address: Address, more: Signatures) -> None:
        self._where = where
        self._address = address
        for name, signature in {**COMMON, **more}.items():
            setattr(self, name, self.bind(name, signature))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"{name} is not among the functions that are bound")

    def bind(self, name: str, signature: tuple[Any, ...]) -> Callable[..., Any]:
        """Make a function callable that was not asked for at the start; raises as the class does."""
        address = self._address(name)
        if address is None:
            raise TargetError(f"{self._where} lacks the function {name}", "Use LLVM 18 or newer.")
        return CFUNCTYPE(*signature)(address)

    def has(self, name: str) -> bool:
        """Whether there is a function of this name."""
        return self._address(name) is not None

    def take(self, text: c_void_p | int | None) -> str:
        """Read a string that LLVM made for us, and free it; nothing gives an empty one."""
        address = text.value if isinstance(text, c_void_p) else text
        if not address:
            return ""
        try:
            return string_at(address).decode("utf-8", "surrogateescape")
        finally:
            self.LLVMDisposeMessage(address)

    def take_error(self, error: int) -> str:
        """Read the message of an `LLVMErrorRef`, and free both."""
        text: int = self.LLVMGetErrorMessage(error)
        try:
            return string_at(text).decode("utf-8", "replace")
        finally:
            self.LLVMDisposeErrorMessage(text)
