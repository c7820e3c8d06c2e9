"""Compilers that run modules: XLA through jaxlib, and IREE as the second opinion."""

from planish.hlo.backend.checked_run import compute
from planish.hlo.backend.compiled_files import CompiledFiles
from planish.hlo.backend.open_compiler import open_backend
from planish.hlo.backend.protocol import Backend, BackendError, Executable

__all__ = ["Backend", "BackendError", "CompiledFiles", "Executable", "compute", "open_backend"]
