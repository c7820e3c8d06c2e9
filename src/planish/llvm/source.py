"""Reading programs: from `.ll`, `.bc` and `.c` files, and from IR itself."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import replace

from planish.core import ProgramError, did_you_mean
from planish.llvm.assembly import check_assembly
from planish.llvm.backend.protocol import Backend
from planish.llvm.clang import FAST
from planish.llvm.how_run import read_bytes, running_by
from planish.llvm.processors import aimed, compiler_of, flag_of
from planish.llvm.program import SOURCE, IRProgram, Running, running_of

SUFFIXES = (".ll", ".bc", ".c")
OPTIONS = ("function", "args", "stdin", "harness", "run", "link", "processor", "backend")
# What depends on where a file lies is no part of the program.
_NAMED = re.compile(r"^; ModuleID = .*\n", re.MULTILINE)
_FOLDER = re.compile(r'^(source_filename = ")[^"\n]*/', re.MULTILINE)


def is_ir(source: str) -> bool:
    """Whether a source is IR itself, and not a file's path."""
    return "define " in source and "\n" in source.strip()


def read_program(source: str, options: Mapping[str, str], backend: Backend) -> IRProgram:
    """Read a program.

    Args:
        source: the path of a `.ll`, `.bc` or `.c` file, or IR; a canonical text brings how it is run.
        options: `function` (keep this one alone), `args` (as in a shell), `stdin` (a file), `harness` (a
            `.c` or `.ll` file with a `main`), `run` (yes: run candidates, also where no objective needs it;
            or how, as "./prog 5 < input"), `link` (libraries: "-lz -pthread"), `processor` (what code is made
            for: native, or a name of clang's).
        backend: reads and prints the module.

    Raises:
        ProgramError: a file cannot be read or does not compile, the IR is malformed or of a newer LLVM, it
            defines no function, or there is no such function.
        TargetError: it is C, or made for a processor, and no compiler is found.
    """
    program, name = _read(source, options.get("processor", ""), backend)
    if wanted := options.get("function"):
        program = only_function(program, wanted, backend)
    stored = running_of(source) if is_ir(source) else Running()
    if options.get("function"):
        stored = None
    running = running_by(options, stored)
    if running and running.harness is not None and "main" in program.definitions:
        raise ProgramError(f"{name} has a 'main', and so has the harness", "Leave one of them out.")
    return replace(program, running=running)


def read_text(text: str, backend: Backend) -> IRProgram:
    """Read a canonical text, as it comes from a store.

    Raises:
        ProgramError: it is malformed, or its assembly could read files.
    """
    program = _printed(text, "the stored program", backend)
    check_assembly(program.ir)
    try:
        return replace(program, running=running_of(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ProgramError(f"the stored program does not tell how it is run: {error}") from error


def only_function(program: IRProgram, name: str, backend: Backend) -> IRProgram:
    """Keep one function, with what it refers to; it is run no more.

    Raises:
        ProgramError: there is no such definition, or it cannot stand alone.
    """
    name = name.removeprefix("@")
    if name not in program.definitions:
        raise ProgramError(f"no function '{name}' is defined", did_you_mean(name, program.definitions))
    found = functions_of(program, backend, (name,))
    if name not in found:
        raise ProgramError(f"function '{name}' cannot stand alone", "Tune the whole module.")
    return found[name]


def functions_of(
    program: IRProgram, backend: Backend, names: Container[str] | None = None
) -> Mapping[str, IRProgram]:
    """Give the functions of a module as modules of their own, by name, in their order.

    Args:
        program: the module.
        backend: prints the new ones.
        names: which; None for all. One that cannot stand alone is left out.
    """
    from planish.llvm.functions.split import split_module

    found = SOURCE.search(program.ir)
    source = f"{found[0]}\n" if found else ""
    split = split_module(program.ir)
    return {
        f.name: replace(_printed(source + f.text, f.name, backend), running=None, backend=program.backend)
        for f in split
        if names is None or f.name in names
    }


def _printed(code: str | bytes, name: str, backend: Backend) -> IRProgram:
    """Have the back end print a module: one text for one module, however it was written."""
    module = backend.parse(code, name)
    try:
        text = _FOLDER.sub(r"\1", _NAMED.sub("", module.text(), count=1), count=1)
        program = IRProgram(text, module.instructions())
    finally:
        module.close()
    if not program.definitions:
        raise ProgramError(f"{name} defines no function", "Name a module with one at least.")
    return program


def _read(source: str, processor: str, backend: Backend) -> tuple[IRProgram, str]:
    """Give the program, and what errors call it."""
    if source.endswith(".c") and not is_ir(source):
        return _compiled(source, processor, backend), source
    code, name = (source, "the IR") if is_ir(source) else (read_bytes(source), source)
    program = _printed(code, name, backend)
    if processor:
        program = _printed(aimed(program.ir, processor, compiler_of(backend)), name, backend)
    return program, name


def _compiled(path: str, processor: str, backend: Backend) -> IRProgram:
    """Compile C for size, and once more for time: clang tells the passes of -O3 more than it tells others."""
    read_bytes(path)
    compiler = compiler_of(backend)
    flags = (flag_of(processor, compiler),) if processor else ()
    small, fast = (_printed(compiler.to_ir(path, flags, level), path, backend) for level in ("O0", FAST))
    return replace(small, fast=fast)
