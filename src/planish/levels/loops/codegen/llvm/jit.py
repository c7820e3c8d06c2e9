"""LLVM's code generator: the processor that it compiles for, and textual IR to machine code."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from planish.core import TargetError
from planish.levels.loops.ir.annotated import Vectors

# Processors


@dataclass(frozen=True)
class Machine:
    """A processor as LLVM names it, and the few facts that shape the code.

    Args:
        triple: architecture, vendor and system.
        cpu: the processor's name; empty for any of the architecture.
        features: LLVM's feature string.
        vector_bits: width of the vectors to use.
        registers: how many vectors the register file holds.
        masks: whether parts of a vector are loaded and stored as cheaply as whole ones.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    registers: int
    masks: bool

    def vectors(self, itemsize: int) -> Vectors:
        """Return the facts on which decisions about loops depend, for elements of this number of bytes."""
        lanes = max(1, self.vector_bits // (8 * itemsize))
        return Vectors(lanes, self.registers, self.masks, compiled=True)


@cache
def host_machine(vector_bits: int | None = None) -> Machine:
    """Describe this processor, with vectors of this number of bits; by default the widest that it has."""
    # The processor's name implies features, of which its system may hide some.
    features: dict[str, bool] = dict(llvm.get_host_cpu_features())
    flat = ",".join(("+" if on else "-") + name for name, on in sorted(features.items()))
    return describe(llvm.get_process_triple(), llvm.get_host_cpu_name(), flat, vector_bits)


def describe(triple: str, cpu: str, features: str, vector_bits: int | None = None) -> Machine:
    """Describe a processor by LLVM's names; see `Machine` for the arguments."""
    has = {f[1:] for f in features.split(",") if f.startswith("+")}
    x86 = triple.startswith(("x86_64", "i686", "i386"))
    wide = "avx512vl" in has
    if vector_bits is None:
        vector_bits = 512 if wide else 256 if "avx2" in has else 128
    # AArch64 has 32, as AVX-512 has; SSE and AVX2 have 16.
    return Machine(triple, cpu, features, vector_bits, 32 if wide or not x86 else 16, wide)


# Compilation

OPT_LEVEL = 1
"""LLVM's code generator at its quickest that still allocates registers well."""

_LOCK = threading.RLock()
"""LLVM's engines are made one at a time: their global tables are not safe for threads."""
_CALLS: AbstractContextManager[object] = getattr(ffi.lib, "_lock", nullcontext())
"""llvmlite's own lock, which each of its functions takes."""


def _hold() -> None:
    """Wait until no thread is in LLVM: a forked child would have half-written tables and taken locks."""
    _LOCK.acquire()
    _CALLS.__enter__()


def _let_go() -> None:
    _CALLS.__exit__(None, None, None)
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)


@cache
def _initialize(native: bool) -> None:
    if native:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()


def target_machine(machine: Machine, opt_level: int, *, jit: bool) -> Any:
    """Make LLVM's target machine.

    Args:
        machine: the processor.
        opt_level: effort of the code generator, 0 to 3.
        jit: whether the code is for this process, else it is position-independent code for files.

    Raises:
        TargetError: LLVM does not know the processor's architecture.
    """
    _initialize(machine.triple == llvm.get_process_triple())
    try:
        target = llvm.Target.from_triple(machine.triple)
    except RuntimeError as error:
        raise TargetError(f"LLVM has no code generator for '{machine.triple}'") from error
    return target.create_target_machine(
        cpu=machine.cpu,
        features=machine.features,
        opt=opt_level,
        reloc="default" if jit else "pic",
        codemodel="jitdefault" if jit else "default",
        jit=jit,
    )


def load(text: str, names: list[str], machine: Machine) -> tuple[object, list[int]]:
    """Compile a module into this process.

    Args:
        text: the IR.
        names: functions whose addresses are wanted.
        machine: must be this processor.

    Returns:
        The owner of the code's memory, and the addresses.
    """
    with _LOCK:
        made = target_machine(machine, OPT_LEVEL, jit=True)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), made)
        engine.finalize_object()
        return engine, [engine.get_function_address(name) for name in names]


def assembly(text: str, machine: Machine) -> str:
    """Compile a module to position-independent assembly."""
    return target_machine(machine, OPT_LEVEL, jit=False).emit_assembly(llvm.parse_assembly(text))


def object_code(text: str, machine: Machine) -> bytes:
    """Compile a module to a position-independent relocatable object."""
    return target_machine(machine, OPT_LEVEL, jit=False).emit_object(llvm.parse_assembly(text))
