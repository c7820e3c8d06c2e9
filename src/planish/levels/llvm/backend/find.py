"""Back ends of this machine: which are installed, and opening one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from planish.core import TargetError, unknown
from planish.levels.llvm.backend import libllvm, lite

if TYPE_CHECKING:
    from planish.levels.llvm.backend.protocol import Backend

VARIABLE = "PLANISH_LLVM_BACKEND"
_MENDS = {
    "libllvm": f"Install LLVM 18 or newer (Debian: apt-get install libllvm22), or name its library by "
    f"{libllvm.VARIABLE}.",
    "llvmlite": "Install it: pip install llvmlite.",
    "llvmlite-reduced": "Install it: pip install llvmlite.",
}


def available() -> list[str]:
    """List the back ends that can be opened here, the preferred one first."""
    found = {"libllvm": libllvm.find(), "llvmlite": lite.find()}
    return [name for name, path in found.items() if path]


def open_backend(name: str = "") -> Backend:
    """Open a back end, once in a process.

    Args:
        name: `libllvm`; `llvmlite`, whole where it can be reached; `llvmlite-reduced`, by its public
            interface alone. Empty: what PLANISH_LLVM_BACKEND names, else the preferred one that is here.

    Raises:
        PlanishError: there is none of this name.
        TargetError: it is not here; the hint says how to get it.
    """
    return open_named(name or os.environ.get(VARIABLE) or next(iter(available()), "libllvm"))


def usable_backend(name: str) -> Backend:
    """Open a back end, or the preferred one where that is not here, as for reading what another one wrote."""
    try:
        return open_backend(name)
    except TargetError:
        return open_backend()


@cache
def open_named(name: str) -> Backend:
    """Open a back end by its name; raises as `open_backend` does."""
    if name not in _MENDS:
        raise unknown("level 'llvm' has no back end", name, _MENDS)
    if name == "libllvm" and (path := libllvm.find()):
        return libllvm.open_libllvm(path)
    if name != "libllvm" and (wheel := lite.find()):
        return lite.open_llvmlite(wheel, reduced=name == "llvmlite-reduced")
    raise TargetError(f"the LLVM back end '{name}' is not installed", _MENDS[name])


def facts() -> Mapping[str, str]:
    """Describe each back end in a line: which LLVM it is, where it lies, and what it runs."""
    return {"libllvm": _libllvm(), "llvmlite": _llvmlite()}


def _libllvm() -> str:
    path = libllvm.find()
    if path is None:
        return f"not found. {_MENDS['libllvm']}"
    return f"LLVM {open_backend('libllvm').version}, {path}; runs every pass"


def _llvmlite() -> str:
    wheel = lite.find()
    if wheel is None:
        return f"not found. {_MENDS['llvmlite']}"
    whole = lite.reach(wheel)
    runs = (
        f"reduced to the passes of its public interface: {whole}"
        if isinstance(whole, str)
        else "runs every pass"
    )
    return f"LLVM {open_backend('llvmlite').version}, llvmlite {wheel.version}, {wheel.library}; {runs}"
