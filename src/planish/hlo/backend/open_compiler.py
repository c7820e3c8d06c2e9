"""Opening a compiler by its name."""

from __future__ import annotations

from planish.hlo.backend.compiled_files import CompiledFiles
from planish.hlo.backend.protocol import Backend
from planish.hlo.installed import versions


def open_backend(name: str = "", cores: int = 1, kept: CompiledFiles | None = None) -> Backend:
    """Open a back end.

    Args:
        name: one of `planish.hlo.installed.BACKENDS`; empty for the first.
        cores: that its code may use.
        kept: where XLA leaves what it compiled, for other processes; None: nowhere.

    Raises:
        TargetError: there is none of this name, or it is not installed.
    """
    if versions(name)["backend"] == "xla":
        from planish.hlo.backend.xla import XlaBackend

        return XlaBackend(cores, kept)
    from planish.hlo.backend.iree import IreeBackend

    return IreeBackend(cores)
