"""Reading programs: from `.ll`, `.bc` and `.c` files, and from IR itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Mapping
from dataclasses import replace
from pathlib import Path

from planish.core import ProgramError, did_you_mean
from planish.llvm.assembly import check_assembly
from planish.llvm.backend.protocol import Backend
from planish.llvm.program import SOURCE, Harness, IRProgram, Running, running_of

SUFFIXES = (".ll", ".bc", ".c")
OPTIONS = ("function", "args", "stdin", "harness", "run", "link", "backend")
STDIN_MOST = 16 << 20
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
            `.c` or `.ll` file with a `main`), `run` (yes: run candidates, also where no objective needs it),
            `link` (libraries: "-lz -pthread").
        backend: reads and prints the module.

    Raises:
        ProgramError: a file cannot be read or does not compile, the IR is malformed or of a newer LLVM, it
            defines no function, or there is no such function.
        TargetError: it is C, and no compiler is found.
    """
    code, name = _code(source, backend)
    program = _printed(code, name, backend)
    if wanted := options.get("function"):
        program = only_function(program, wanted, backend)
    stored = running_of(source) if is_ir(source) else Running()
    if options.get("function"):
        stored = None
    running = _running(options, stored)
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


def _code(source: str, backend: Backend) -> tuple[str | bytes, str]:
    """Give the module's text or bitcode, and what errors call it."""
    if is_ir(source):
        return source, "the IR"
    data = read_bytes(source)
    if source.endswith(".c"):
        from planish.llvm.clang import find_compiler

        return find_compiler(int(backend.version.partition(".")[0])).to_ir(source), source
    return data, source


def read_bytes(path: str) -> bytes:
    """Read a file that the user named.

    Raises:
        ProgramError: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ProgramError(f"cannot read '{path}': {error.strerror}", "Check the path.") from error


def _running(options: Mapping[str, str], stored: Running | None) -> Running | None:
    """Give how it is run; who says how a function is run has a harness in mind, and it can be run."""
    if not any(options.get(name) for name in ("args", "stdin", "harness", "run", "link")):
        return stored
    changed = stored or Running()
    if run := options.get("run"):
        if run != "yes":
            raise ProgramError(f"run cannot be '{run}'", "Write run=yes, or --run.")
        changed = replace(changed, asked=True)
    if args := options.get("args"):
        changed = replace(changed, args=_words(args))
    if link := options.get("link"):
        changed = replace(changed, link=_words(link))
    if path := options.get("stdin"):
        changed = replace(changed, stdin=_input(path))
    if path := options.get("harness"):
        changed = replace(changed, harness=_harness(path))
    return changed


def _words(args: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(args))
    except ValueError as error:
        raise ProgramError(f"the arguments cannot be read: {error}", "Quote them as in a shell.") from error


def _input(path: str) -> bytes:
    data = read_bytes(path)
    if len(data) > STDIN_MOST:
        most = STDIN_MOST >> 20
        raise ProgramError(f"'{path}' has over {most} MiB", "Give less input: it is stored with the program.")
    return data


def _harness(path: str) -> Harness:
    kind = Path(path).suffix.removeprefix(".")
    if kind not in ("c", "ll"):
        raise ProgramError(f"the harness '{path}' is no .c or .ll file", "Write it in C, or as LLVM IR.")
    try:
        return Harness(kind, read_bytes(path).decode())
    except UnicodeDecodeError as error:
        raise ProgramError(f"'{path}' is not a text: {error.reason}", "Write it in UTF-8.") from error
