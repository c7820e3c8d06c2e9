"""From LLVM's textual IR to machine code: in this process, as assembly, or as an object file."""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from planish.core import TargetError
from planish.loops.codegen.llvm.machine import Machine

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


def load(text: str, names: list[str], machine: Machine, opt_level: int) -> tuple[object, list[int]]:
    """Compile a module into this process.

    Args:
        text: the IR.
        names: functions whose addresses are wanted.
        machine: must be this processor.
        opt_level: effort of the code generator, 0 to 3.

    Returns:
        The owner of the code's memory, and the addresses.
    """
    with _LOCK:
        made = target_machine(machine, opt_level, jit=True)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), made)
        engine.finalize_object()
        return engine, [engine.get_function_address(name) for name in names]


def assembly(text: str, machine: Machine, opt_level: int) -> str:
    """Compile a module to position-independent assembly."""
    return target_machine(machine, opt_level, jit=False).emit_assembly(llvm.parse_assembly(text))


def object_file(text: str, machine: Machine, opt_level: int) -> bytes:
    """Compile a module to a position-independent object file."""
    return target_machine(machine, opt_level, jit=False).emit_object(llvm.parse_assembly(text))
