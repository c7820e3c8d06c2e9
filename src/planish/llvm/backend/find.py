"""Which LLVMs are here, and opening one."""

from __future__ import annotations

import os
from functools import cache

from planish.core import TargetError, did_you_mean
from planish.llvm.backend import libllvm
from planish.llvm.backend.protocol import Backend

VARIABLE = "PLANISH_LLVM_BACKEND"
NAMES = ("libllvm", "llvmlite")


def available() -> list[str]:
    """List the back ends that can be opened here, the preferred one first."""
    return ["libllvm"] if libllvm.find() else []


def open_backend(name: str = "") -> Backend:
    """Open a back end, once in a process.

    Args:
        name: `libllvm` or `llvmlite`; empty: what PLANISH_LLVM_BACKEND names, else the preferred one.

    Raises:
        TargetError: there is none of this name here; the hint says how to get it.
    """
    return _open(name or os.environ.get(VARIABLE, "") or available()[0])


@cache
def _open(name: str) -> Backend:
    path = libllvm.find()
    if name == "libllvm" and path:
        return libllvm.open_libllvm(path)
    raise TargetError(f"no back end {name}", did_you_mean(name, NAMES))
