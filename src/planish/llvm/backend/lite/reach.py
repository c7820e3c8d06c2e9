"""Reaching the whole of LLVM inside llvmlite's library, at the addresses in its table of symbols.

llvmlite offers few passes and no textual pipelines, but its wheel is not stripped: LLVM's C API and its
parser of pipelines are in it as local symbols. No version promises that, so it is proved each time: by the
version, by the symbols, and by a child process that tries them and must survive. Where it cannot be reached,
the reduced back end is used.
"""

from __future__ import annotations

from contextlib import suppress
from ctypes import CDLL, c_void_p, cast
from functools import cache

from planish.core import TargetError
from planish.isolation import ForkLimits, in_child
from planish.llvm.backend import elf
from planish.llvm.backend.capi import NAMES, Address, CBackend, Functions, LlvmSession
from planish.llvm.backend.lite.pipelines import SIGNATURES, ParsePipelines
from planish.llvm.backend.lite.wheel import Wheel

KNOWN = "0.50."  # versions that were tried; others may lie otherwise
LIFETIME = 10_000  # evaluations: by then some 35 MB have leaked; no pass builder frees its callbacks
_TRIAL_LIMITS = ForkLimits(seconds=20, memory_bytes=0)
_ANCHOR = "LLVMPY_GetVersionInfo"
_TRIAL = (
    "define i32 @f(i32 %x) {\n %p = alloca i32\n store i32 %x, ptr %p\n %y = load i32, ptr %p\n ret i32 %y\n}"
)


@cache
def reach(wheel: Wheel) -> CBackend | str:
    """Open the whole of LLVM inside llvmlite, once in a process; or tell why that cannot be done."""
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
    """Try what is found at these addresses, in a child process; tells whether that went well."""

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
