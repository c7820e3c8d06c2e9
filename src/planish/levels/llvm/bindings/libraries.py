"""LLVM libraries of this machine: finding them, and opening their bindings.

LLVM's own shared library is that which Linux distributions and Homebrew install. The other one is in
llvmlite's wheel: it offers few passes and no textual pipelines, but it is not stripped, and LLVM's C API and
its parser of pipelines are local symbols there. No version promises that, so it is proved each time: by the
version, by the symbols, and by a child process that tries them and must survive. Where they cannot be
reached, the reduced bindings are used (see `lite_reduced`).
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from ctypes import CDLL, Structure, c_char_p, c_size_t, c_void_p, cast
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from planish.core import TargetError, unknown
from planish.levels.llvm.bindings import elf
from planish.levels.llvm.bindings.c_api import NAMES, Address, Functions, Signatures
from planish.levels.llvm.bindings.c_module import CBindings, LlvmSession, version
from planish.levels.llvm.bindings.protocol import Bindings
from planish.sandbox.fork_pool import ForkLimits, in_child
from planish.sandbox.tool import run_tool

VARIABLE = "PLANISH_LLVM_BACKEND"
LIBRARY_VARIABLE = "PLANISH_LIBLLVM"
OLDEST = 18
_INSTALL_LLVMLITE = "Install it: pip install llvmlite."
_HINTS = {
    "libllvm": f"Install LLVM {OLDEST} or newer (Debian: apt-get install libllvm22), or name its library by "
    f"{LIBRARY_VARIABLE}.",
    "llvmlite": _INSTALL_LLVMLITE,
    "llvmlite-reduced": _INSTALL_LLVMLITE,
}


def available() -> list[str]:
    """List the bindings that can be opened here, the preferred ones first."""
    found = {"libllvm": find_libllvm(), "llvmlite": find_llvmlite()}
    return [name for name, path in found.items() if path]


def open_bindings(name: str = "") -> Bindings:
    """Open bindings, once in a process.

    Args:
        name: `libllvm`; `llvmlite`, whole where it can be reached; `llvmlite-reduced`, by its public
            interface alone. Empty: what PLANISH_LLVM_BACKEND names, else the preferred one that is here.

    Raises:
        PlanishError: there is none of this name.
        TargetError: it is not here; the hint says how to get it.
    """
    name = name or os.environ.get(VARIABLE, "")
    return open_named(name or ("libllvm" if find_libllvm() or not find_llvmlite() else "llvmlite"))


def usable_bindings(name: str) -> Bindings:
    """Open bindings, or the preferred ones where these are not here, as to read what others wrote."""
    try:
        return open_bindings(name)
    except TargetError:
        return open_bindings()


@cache
def open_named(name: str) -> Bindings:
    """Open bindings by their name; raises as `open_bindings` does."""
    if name not in _HINTS:
        raise unknown("level 'llvm' has no back end", name, _HINTS)
    if name == "libllvm" and (path := find_libllvm()):
        return _open_libllvm(path)
    if name != "libllvm" and (wheel := find_llvmlite()):
        whole = "" if name == "llvmlite-reduced" else reach(wheel)
        if not isinstance(whole, str):
            return whole
        # It imports llvmlite, which takes a while.
        from planish.levels.llvm.bindings.lite_reduced import ReducedBindings

        return ReducedBindings(LIFETIME)
    raise TargetError(f"the LLVM back end '{name}' is not installed", _HINTS[name])


def facts() -> Mapping[str, str]:
    """Describe each in a line: which LLVM it is, where it is installed, and what it runs."""
    found = {name: f"not found. {_HINTS[name]}" for name in ("libllvm", "llvmlite")}
    if path := find_libllvm():
        found["libllvm"] = f"LLVM {open_bindings('libllvm').version}, {path}; runs every pass"
    if wheel := find_llvmlite():
        why = reach(wheel)
        runs = "runs every pass"
        if isinstance(why, str):
            runs = f"reduced to the passes of its public interface: {why}"
        version = open_bindings("llvmlite").version
        found["llvmlite"] = f"LLVM {version}, llvmlite {wheel.version}, {wheel.library}; {runs}"
    return found


_LIBLLVM_SIGNATURES: Signatures = {
    "LLVMCreatePassBuilderOptions": (c_void_p,),
    "LLVMRunPasses": (c_void_p, c_void_p, c_char_p, c_void_p, c_void_p),
}


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


def find_libllvm() -> Path | None:
    """Find the library: the one that PLANISH_LIBLLVM names, else the newest of LLVM 18 or later.

    Raises:
        TargetError: PLANISH_LIBLLVM names no file.
    """
    if named := os.environ.get(LIBRARY_VARIABLE):
        if not Path(named).is_file():
            what = f"{LIBRARY_VARIABLE} names no file: {named}"
            raise TargetError(what, f"Correct or unset {LIBRARY_VARIABLE}.")
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
    try:
        ran = run_tool([program, "--libdir"], seconds=_PATIENCE_S)
    except OSError:  # a timeout too
        return []
    return [Path(os.fsdecode(ran.output.strip()))] if ran.code == 0 else []


def _open_libllvm(path: Path) -> CBindings:
    """Load a library."""
    try:
        library = CDLL(str(path))
    except OSError as error:
        what = f"{path} cannot be loaded: {error}"
        raise TargetError(what, f"Name another by {LIBRARY_VARIABLE}.") from error

    def address(name: str) -> int | None:
        return cast(library[name], c_void_p).value if hasattr(library, name) else None

    functions = Functions(str(path), address, _LIBLLVM_SIGNATURES)
    if int(version(functions).partition(".")[0]) < OLDEST:
        raise TargetError(f"{path} is LLVM {version(functions)}", f"Install LLVM {OLDEST} or newer.")
    options: int = functions.LLVMCreatePassBuilderOptions()  # those that `opt` has by default

    def run(module: int, machine: int, pipeline: str) -> str:
        error = functions.LLVMRunPasses(module, pipeline.encode(), machine, options)
        return functions.take_error(error) if error else ""

    return CBindings("libllvm", LlvmSession(functions, run), lifetime=None)


@dataclass(frozen=True)
class Wheel:
    """An installed llvmlite: its version, and its shared library."""

    version: str
    library: Path


def find_llvmlite() -> Wheel | None:
    """Find llvmlite, without importing it."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return None
    from importlib.metadata import version  # where LLVM's own library is installed, it is not needed

    return Wheel(version("llvmlite"), Path(spec.origin).parent / "binding" / "libllvmlite.so")


# Error llvm::PassBuilder::parsePassPipeline(ModulePassManager &, StringRef)
_PARSE = (
    "_ZN4llvm11PassBuilder17parsePassPipelineERNS_11PassManager"
    "INS_6ModuleENS_15AnalysisManagerIS2_JEEEJEEENS_9StringRefE"
)
_CHECKED = 1  # a flag in the lowest bit of an llvm::Error


class _Error(Structure):
    # An llvm::Error is one pointer, but is returned in memory, as C++ has it for types with a destructor. Two
    # words more make ctypes return it there, too; they are never written to.
    _fields_: ClassVar = [("payload", c_void_p), ("padding", c_void_p * 2)]


_LLVMLITE_SIGNATURES: Signatures = {
    _PARSE: (_Error, c_void_p, c_void_p, c_char_p, c_size_t),
    "LLVMPY_CreatePipelineTuningOptions": (c_void_p,),
    "LLVMPY_CreatePassBuilder": (c_void_p, c_void_p, c_void_p),
    "LLVMPY_DisposePassBuilder": (None, c_void_p),
    "LLVMPY_CreateNewModulePassManager": (c_void_p,),
    "LLVMPY_RunNewModulePassManager": (None, c_void_p, c_void_p, c_void_p),
    "LLVMPY_DisposeNewModulePassManger": (None, c_void_p),
}


KNOWN = "0.50."  # versions that were tried; others may have another layout
LIFETIME = 10_000  # evaluations: by then some 35 MB have leaked; no pass builder frees its callbacks
_TRIAL_LIMITS = ForkLimits(seconds=20, memory_bytes=0)
_ANCHOR = "LLVMPY_GetVersionInfo"
_TRIAL = (
    "define i32 @f(i32 %x) {\n %p = alloca i32\n store i32 %x, ptr %p\n %y = load i32, ptr %p\n ret i32 %y\n}"
)


@cache
def reach(wheel: Wheel) -> CBindings | str:
    """Open the whole of LLVM inside llvmlite, once in a process; return the reason where it fails."""
    if not wheel.version.startswith(KNOWN):
        return f"llvmlite {wheel.version} is not {KNOWN}x"
    try:
        address = _addresses(wheel)
        return _open(address) if survives(address) else "it did not pass its self-test"
    except TargetError as error:
        return error.message


def _addresses(wheel: Wheel) -> Address:
    wanted = {_ANCHOR, *NAMES, *_LLVMLITE_SIGNATURES}
    found = elf.functions(wheel.library, wanted)
    if _ANCHOR not in found:
        raise TargetError(f"{wheel.library} names no local symbols")
    library = CDLL(str(wheel.library))
    # One exported symbol is in both tables: the difference is where the library was loaded.
    base = (cast(library[_ANCHOR], c_void_p).value or 0) - found[_ANCHOR]
    return lambda name: base + found[name] if name in found else None


def _open(address: Address) -> CBindings:
    functions = Functions("llvmlite", address, _LLVMLITE_SIGNATURES)
    parse = functions.bind(_PARSE, _LLVMLITE_SIGNATURES[_PARSE])
    options: int = functions.LLVMPY_CreatePipelineTuningOptions()  # those that `opt` has by default

    def run(module: int, machine: int, pipeline: str) -> str:
        # Every run has a pass builder of its own: a used one calls back what is gone.
        builder = functions.LLVMPY_CreatePassBuilder(machine, options)
        manager = functions.LLVMPY_CreateNewModulePassManager()
        try:
            text = pipeline.encode()
            # The flag is not part of the pointer, and success is not a pointer.
            if error := (parse(builder, manager, text, len(text)).payload or 0) & ~_CHECKED:
                return functions.take_error(error)
            functions.LLVMPY_RunNewModulePassManager(manager, module, builder)
        finally:
            functions.LLVMPY_DisposeNewModulePassManger(manager)
            functions.LLVMPY_DisposePassBuilder(builder)
        return ""

    return CBindings("llvmlite", LlvmSession(functions, run), LIFETIME)


def survives(address: Address) -> bool:
    """Try what is found at these addresses, in a child process; return whether it survived."""

    def trial() -> bool:
        with suppress(Exception):  # whatever it is, it cannot be used
            return _passes_trial(_open(address))
        return False

    # In a child, since a wrong address does not raise: it ends the process.
    return in_child(trial, bool, _TRIAL_LIMITS) is True


def _passes_trial(bindings: CBindings) -> bool:
    """Try a pipeline that works, one that is refused, and code generation."""
    module = bindings.parse(_TRIAL)
    copy = module.clone()
    copy.run("function(sroa<modify-cfg>),default<Oz>")
    counts = module.instructions(), copy.instructions()
    # The refusal is tried, too: it takes the way of errors, where the layout of llvm::Error matters.
    return counts == (4, 1) and copy.text_bytes() > 0 and not bindings.runs("function(unknown-pass)")
