"""Reading a module as improving it needs it: unoptimised, and of functions that are to be small."""

from __future__ import annotations

from collections.abc import Mapping

from planish.core import ProgramError
from planish.llvm.backend import open_backend
from planish.llvm.clang import find_compiler
from planish.llvm.functions.attributes import for_size
from planish.llvm.source import read_program

_UNOPTIMISED = ("-Xclang", "-disable-llvm-passes")


def read_for_size(source: str, level: str, options: Mapping[str, str]) -> str:
    """Read a module from a `.ll`, `.bc` or `.c` file, or from IR itself.

    C is compiled as `clang -Oz` does it, up to LLVM's passes.

    Args:
        source: the file, or IR.
        level: the level that the user names; empty or `llvm`.
        options: as `read_program` takes them.

    Raises:
        ProgramError: it is no module, or cannot be read.
        TargetError: it is C, and no compiler is found.
    """
    if level not in ("", "llvm"):
        what = f"programs of level '{level}' have no functions"
        raise ProgramError(what, "Leave --per-function out.")
    backend = open_backend(options.get("backend", ""))
    if source.endswith(".c"):
        compiler = find_compiler(int(backend.version.partition(".")[0]))
        source = compiler.to_ir(source, _UNOPTIMISED, "Oz")
    return for_size(read_program(source, options, backend).ir)
