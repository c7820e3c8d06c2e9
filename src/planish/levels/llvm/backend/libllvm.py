"""LLVM's own shared library, as Linux distributions and Homebrew install it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from ctypes import CDLL, c_char_p, c_void_p, cast
from pathlib import Path

from planish.core import TargetError
from planish.levels.llvm.backend.c_api import Functions, Signatures
from planish.levels.llvm.backend.c_module import CBackend, LlvmSession, version

SIGNATURES: Signatures = {
    "LLVMCreatePassBuilderOptions": (c_void_p,),
    "LLVMRunPasses": (c_void_p, c_void_p, c_char_p, c_void_p, c_void_p),
}


class RunPasses:
    """Runs pipelines with the options that `opt` has by default."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._options: int = functions.LLVMCreatePassBuilderOptions()

    def run(self, module: int, machine: int, pipeline: str) -> str:
        """Transform a module; return LLVM's error, or an empty text."""
        error = self._functions.LLVMRunPasses(module, pipeline.encode(), machine, self._options)
        return self._functions.take_error(error) if error else ""


VARIABLE = "PLANISH_LIBLLVM"
OLDEST = 18
_FOLDERS = (
    "usr/lib/*-linux-gnu*",
    "usr/lib/llvm-*/lib",
    "usr/lib64",
    "usr/lib64/llvm*/lib*",
    "usr/lib",
    "usr/local/lib",
    "opt/homebrew/opt/llvm*/lib",
    "usr/local/opt/llvm*/lib",
)
_FILES = ("libLLVM.so.*", "libLLVM-[0-9]*.so", "libLLVM.so", "libLLVM.dylib")
_PATIENCE_S = 60.0
_VERSION = re.compile(r"libLLVM(?:-|\.so\.)(\d+)(?:\.(\d+))?")


def find() -> Path | None:
    """Find the library: the one that PLANISH_LIBLLVM names, else the newest of LLVM 18 or later.

    Raises:
        TargetError: PLANISH_LIBLLVM names no file.
    """
    if named := os.environ.get(VARIABLE):
        if not Path(named).is_file():
            raise TargetError(f"{VARIABLE} names no file: {named}", f"Correct or unset {VARIABLE}.")
        return Path(named)
    folders = (folder for pattern in _FOLDERS for folder in Path("/").glob(pattern))
    # The program last: to start it takes longer than to look into all folders.
    return _newest(folders) or _newest(_llvm_config_folders())


def _newest(folders: Iterable[Path]) -> Path | None:
    # Resolved, for most names are links, and only the file's own name has the whole version.
    files = {file.resolve() for folder in folders for name in _FILES for file in folder.glob(name)}
    return max((f for f in files if _named_version(f) >= (OLDEST, 0)), key=_named_version, default=None)


def _named_version(file: Path) -> tuple[int, int]:
    # A name without a version, as Homebrew's, may be of any; it is asked after it is loaded.
    version = _VERSION.match(file.name)
    return (int(version[1]), int(version[2] or 0)) if version else (OLDEST, 0)


def _llvm_config_folders() -> list[Path]:
    program = shutil.which("llvm-config")
    if program is None:
        return []
    from planish.sandbox.tool import run_tool

    try:
        ran = run_tool([program, "--libdir"], seconds=_PATIENCE_S)
    except OSError:  # a timeout too
        return []
    return [Path(os.fsdecode(ran.output.strip()))] if ran.code == 0 else []


def open_libllvm(path: Path) -> CBackend:
    """Load a library.

    Raises:
        TargetError: it cannot be loaded, or is of an LLVM older than 18.
    """
    try:
        library = CDLL(str(path))
    except OSError as error:
        raise TargetError(f"{path} cannot be loaded: {error}", f"Name another by {VARIABLE}.") from error
    functions = Functions(str(path), lambda name: _address(library, name), SIGNATURES)
    if int(version(functions).partition(".")[0]) < OLDEST:
        raise TargetError(f"{path} is LLVM {version(functions)}", f"Install LLVM {OLDEST} or newer.")
    return CBackend("libllvm", LlvmSession(functions, RunPasses(functions)), lifetime=None)


def _address(library: CDLL, name: str) -> int | None:
    return cast(library[name], c_void_p).value if hasattr(library, name) else None
