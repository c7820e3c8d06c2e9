"""The processor that code is made for, where the user names one."""

from __future__ import annotations

import platform
import re

from planish.core import ProgramError
from planish.llvm.backend.protocol import Backend
from planish.llvm.clang import Compiler, find_compiler
from planish.llvm.functions.attributes import for_processor

_NAME = re.compile(r"[\w.+-]+", re.ASCII)
_AIM = re.compile(r'"(target-cpu|tune-cpu|target-features)"="([^"]*)"')
_EMPTY = "void f(void) {}\n"


def compiler_of(backend: Backend) -> Compiler:
    """Find a C compiler whose IR a back end can read.

    Raises:
        TargetError: there is none.
    """
    return find_compiler(int(backend.version.partition(".")[0]))


def flag_of(processor: str, compiler: Compiler) -> str:
    """Give the compiler's flag for a processor.

    Args:
        processor: `native`, or a name of clang's, as `x86-64-v3`.
        compiler: whose names they are.

    Raises:
        ProgramError: it knows none of this name.
    """
    flag = f"{_option()}={processor}"
    _probed(processor, flag, compiler)
    return flag


def aimed(ir: str, processor: str, compiler: Compiler) -> str:
    """Make every definition of a module for a processor, as clang does for C.

    Args:
        ir: the module.
        processor: as in `flag_of`.
        compiler: says what the processor has: a virtual machine may lack what the name promises.

    Raises:
        ProgramError: as in `flag_of`.
    """
    return for_processor(ir, dict(_AIM.findall(_probed(processor, f"{_option()}={processor}", compiler))))


def _option() -> str:
    return "-march" if platform.machine() in ("x86_64", "AMD64", "i686") else "-mcpu"


def _probed(processor: str, flag: str, compiler: Compiler) -> str:
    """Compile an empty function for a processor."""
    unknown = ProgramError(
        f"{compiler.name} knows no processor '{processor}'",
        "Write processor=native, or a name that clang takes.",
    )
    if not _NAME.fullmatch(processor):
        raise unknown
    try:
        return compiler.to_ir("-", (flag,), source=_EMPTY)
    except ProgramError as error:
        raise unknown from error
