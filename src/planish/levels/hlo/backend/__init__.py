"""Compilers that run modules: XLA through jaxlib, and IREE to cross-check."""

from __future__ import annotations

from planish.levels.hlo.backend.compiler import Backend, CompiledFiles
from planish.levels.hlo.machine import versions


def open_backend(name: str = "", cores: int = 1, files: CompiledFiles | None = None) -> Backend:
    """Open a back end.

    Args:
        name: one of `planish.levels.hlo.machine.BACKENDS`; empty for the first.
        cores: that its code may use.
        files: where XLA leaves what it compiled, for other processes; None: nowhere.

    Raises:
        TargetError: there is none of this name, or it is not installed.
    """
    if versions(name)["backend"] == "xla":
        from planish.levels.hlo.backend.xla import XlaBackend

        return XlaBackend(cores, files)
    from planish.levels.hlo.backend.iree import IreeBackend

    return IreeBackend(cores)
