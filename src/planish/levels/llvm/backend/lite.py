"""The LLVM inside llvmlite's wheel: whole where it can be reached, else what llvmlite offers of it.

llvmlite offers few passes and no textual pipelines, but its wheel is not stripped: LLVM's C API and its
parser of pipelines are in it as local symbols. No version promises that, so it is proved each time: by the
version, by the symbols, and by a child process that tries them and must survive. Where it cannot be reached,
the reduced back end is used (see `lite_reduced`).
"""

from __future__ import annotations

from contextlib import suppress
from ctypes import CDLL, Structure, c_char_p, c_size_t, c_void_p, cast
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from planish.core import TargetError
from planish.levels.llvm.backend import elf
from planish.levels.llvm.backend.c_api import NAMES, Address, Functions, Signatures
from planish.levels.llvm.backend.c_module import CBackend, LlvmSession
from planish.levels.llvm.backend.protocol import Backend
from planish.sandbox.fork_pool import ForkLimits, in_child


@dataclass(frozen=True)
class Wheel:
    """An installed llvmlite: its version, and its shared library."""

    version: str
    library: Path


def find() -> Wheel | None:
    """Find llvmlite, without importing it."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return None
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


SIGNATURES: Signatures = {
    _PARSE: (_Error, c_void_p, c_void_p, c_char_p, c_size_t),
    "LLVMPY_CreatePipelineTuningOptions": (c_void_p,),
    "LLVMPY_CreatePassBuilder": (c_void_p, c_void_p, c_void_p),
    "LLVMPY_DisposePassBuilder": (None, c_void_p),
    "LLVMPY_CreateNewModulePassManager": (c_void_p,),
    "LLVMPY_RunNewModulePassManager": (None, c_void_p, c_void_p, c_void_p),
    "LLVMPY_DisposeNewModulePassManger": (None, c_void_p),
}


class ParsePipelines:
    """Runs pipelines with the options that `opt` has by default.

    Every run has a pass builder of its own: a used one calls back what is gone.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._parse = functions.bind(_PARSE, SIGNATURES[_PARSE])
        self._options: int = functions.LLVMPY_CreatePipelineTuningOptions()

    def run(self, module: int, machine: int, pipeline: str) -> str:
        """Transform a module; return LLVM's error, or an empty text."""
        functions = self._functions
        builder = functions.LLVMPY_CreatePassBuilder(machine, self._options)
        manager = functions.LLVMPY_CreateNewModulePassManager()
        try:
            text = pipeline.encode()
            # The flag is no part of the pointer, and success is no pointer.
            error = (self._parse(builder, manager, text, len(text)).payload or 0) & ~_CHECKED
            if error:
                return self._functions.take_error(error)
            functions.LLVMPY_RunNewModulePassManager(manager, module, builder)
        finally:
            functions.LLVMPY_DisposeNewModulePassManger(manager)
            functions.LLVMPY_DisposePassBuilder(builder)
        return ""


KNOWN = "0.50."  # versions that were tried; others may lie otherwise
LIFETIME = 10_000  # evaluations: by then some 35 MB have leaked; no pass builder frees its callbacks
_TRIAL_LIMITS = ForkLimits(seconds=20, memory_bytes=0)
_ANCHOR = "LLVMPY_GetVersionInfo"
_TRIAL = (
    "define i32 @f(i32 %x) {\n %p = alloca i32\n store i32 %x, ptr %p\n %y = load i32, ptr %p\n ret i32 %y\n}"
)


@cache
def reach(wheel: Wheel) -> CBackend | str:
    """Open the whole of LLVM inside llvmlite, once in a process; return the reason where it fails."""
    if not wheel.version.startswith(KNOWN):
        return f"llvmlite {wheel.version} is not {KNOWN}x"
    try:
        address = _addresses(wheel)
        return _open(address) if survives(address) else "it did not pass its self-test"
    except TargetError as error:
        return error.message


def _addresses(wheel: Wheel) -> Address:
    wanted = {_ANCHOR, *NAMES, *SIGNATURES}
    found = elf.functions(wheel.library, wanted)
    if _ANCHOR not in found:
        raise TargetError(f"{wheel.library} names no local symbols")
    library = CDLL(str(wheel.library))
    # One exported symbol stands in both tables: the difference is where the library was loaded.
    base = (cast(library[_ANCHOR], c_void_p).value or 0) - found[_ANCHOR]
    return lambda name: base + found[name] if name in found else None


def _open(address: Address) -> CBackend:
    functions = Functions("llvmlite", address, SIGNATURES)
    return CBackend("llvmlite", LlvmSession(functions, ParsePipelines(functions)), LIFETIME)


def survives(address: Address) -> bool:
    """Try what is found at these addresses, in a child process; return whether it survived."""

    def trial() -> bool:
        with suppress(Exception):  # whatever it is, it cannot be used
            return _passes(_open(address))
        return False

    # In a child, since a wrong address does not raise: it ends the process.
    return in_child(trial, bool, _TRIAL_LIMITS) is True


def _passes(backend: CBackend) -> bool:
    """Try what is reached: a pipeline that works, one that is refused, and code."""
    module = backend.parse(_TRIAL)
    copy = module.clone()
    copy.run("function(sroa<modify-cfg>),default<Oz>")
    counts = module.instructions(), copy.instructions()
    # The refusal is tried, too: it takes the way of errors, where the layout of llvm::Error matters.
    return counts == (4, 1) and copy.text_bytes() > 0 and not backend.runs("function(unknown-pass)")


def open_llvmlite(wheel: Wheel, *, reduced: bool = False) -> Backend:
    """Open it: whole where that can be reached."""
    whole = "" if reduced else reach(wheel)
    if not isinstance(whole, str):
        return whole
    # It imports llvmlite, which takes a while.
    from planish.levels.llvm.backend.lite_reduced import ReducedBackend

    return ReducedBackend(LIFETIME)
