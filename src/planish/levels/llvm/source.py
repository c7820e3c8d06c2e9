"""Reading programs from `.ll`, `.bc` and `.c` files, and from IR itself.

A program may be aimed at a processor that the user names. Inline assembly that reads files is refused: an
assembler reads them where a directive says so.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Container, Mapping
from contextlib import closing
from dataclasses import replace

from planish.core import ProgramError, did_you_mean
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.clang import FAST, Compiler, find_compiler
from planish.levels.llvm.ir.attributes import for_processor
from planish.levels.llvm.program import (
    SOURCE,
    IRProgram,
    Running,
    is_ir,
    linked_of,
    read_bytes,
    running_by,
    running_of,
)

_ASSEMBLY = re.compile(r'\basm\b[^"\n]*"((?:[^"\\]|\\.)*)"')
# LLVM writes quotes, and what cannot be printed, as a backslash and two hexadecimal digits.
_ESCAPE = re.compile(r"\\([0-9a-fA-F]{2})")
_SECTION = re.compile(r"(\.(?:push)?section\s+)[\w.]+", re.IGNORECASE)
_WORD = re.compile(r"(?<![\w.$])\.([\w$.\\]*)")
_OPERAND = re.compile(r"(?:^|[\n;:])\s*(\$\{?\d\w*)")
_HARMLESS = re.compile(
    r"L[\w.$]*|align|arch|arch_extension|arm|ascii|asciz|balign|balignl|balignw|bss|byte|cfi_\w+"
    r"|code|code16|code32|code64|comm|cpu|data|double|else|elseif|endif|equ|error|eabi_attribute|fill|float"
    r"|fnend|fnstart|fpu|globl|global|hidden|hword|ident|if|ifc|ifdef|ifeq|ifge|ifgt|ifle|iflt|ifnc|ifndef|ifne"
    r"|insn|inst|int|intel_syntax|att_syntax|internal|local|long|ltorg|nops|octa|option|org|p2align"
    r"|p2alignl|p2alignw|pool|popsection|previous|protected|pushsection|quad|reloc|rodata|section|set|short"
    r"|size|skip|sleb128|space|string|subsection|symver|syntax|text|thumb|thumb_func|type|uleb128|unreq|value"
    r"|weak|weakref|word|xword|zero"
)
"""Directives that real code has. `.incbin` and `.include` read files; macros can spell them in pieces."""


def reading_directive(ir: str) -> str:
    """Return a directive of a module's assembly that may read a file; empty where none does."""
    for text in _ASSEMBLY.findall(ir):
        # Unescaped first: '.incbin' may be written with a backslash and digits, and LLVM reads it all the
        # same.
        plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
        for word in _WORD.findall(_SECTION.sub(r"\1", plain)):
            # A list of what is allowed, not of what is forbidden: new directives that read files may come.
            if word and not _HARMLESS.fullmatch(word):  # a dot alone is an address
                return f".{word}"
        if begins := _OPERAND.search(plain):  # an operand may be the name of a directive
            return begins[1]
    return ""


def check_assembly(ir: str) -> None:
    """Refuse a module whose assembly has directives other than harmless ones.

    Raises:
        ProgramError: it could make the assembler read a file.
    """
    if word := reading_directive(ir):
        what = f"the stored program has the assembler's directive '{word}', which may read any file"
        raise ProgramError(what, "Tune it from its own file.")


_NAME = re.compile(r"[\w.+-]+", re.ASCII)
AIM = re.compile(r'"(target-cpu|tune-cpu|target-features)"="([^"]*)"')
_EMPTY = "void f(void) {}\n"


def compiler_of(bindings: Bindings) -> Compiler:
    """Find a C compiler whose IR the bindings can read; raises TargetError where there is none."""
    return find_compiler(int(bindings.version.partition(".")[0]))


def flag_of(processor: str, compiler: Compiler) -> str:
    """Return the compiler's flag for a processor.

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

    Raises:
        ProgramError: as in `flag_of`.
    """
    return for_processor(ir, dict(AIM.findall(_probed(processor, f"{_option()}={processor}", compiler))))


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


# What depends on the path of a file is not part of the program.
_NAMED = re.compile(r"^; ModuleID = .*\n", re.MULTILINE)
_FOLDER = re.compile(r'^(source_filename = ")[^"\n]*/', re.MULTILINE)


def read_program(source: str, options: Mapping[str, str], bindings: Bindings) -> IRProgram:
    """Read a program.

    Args:
        source: the path of a `.ll`, `.bc` or `.c` file, or IR; a canonical text brings how it is run.
        options: `function` (keep this one alone), `args` (as in a shell), `stdin` (a file), `harness` (a
            `.c` or `.ll` file with a `main`), `run` (yes: run candidates, also where no objective needs it;
            or how, as "./prog 5 < input"), `link` (libraries: "-lz -pthread"), `processor` (what code is made
            for: native, or a name of clang's).
        bindings: reads and prints the module.

    Raises:
        ProgramError: a file cannot be read or does not compile, the IR is malformed or of a newer LLVM, it
            defines no function, or there is no such function.
        TargetError: it is C, or made for a processor, and no compiler is found.
    """
    processor = options.get("processor", "")
    if source.endswith(".c") and not is_ir(source):
        program, name = _compiled(source, processor, bindings), source
    else:
        code, name = (source, "the IR") if is_ir(source) else (read_bytes(source), source)
        program = _printed(code, name, bindings)
        if processor:
            program = _printed(aimed(program.ir, processor, compiler_of(bindings)), name, bindings)
    if wanted := options.get("function"):
        program = only_function(program, wanted, bindings)
    stored = running_of(source) if is_ir(source) else Running()
    if options.get("function"):
        stored = None
    running = running_by(options, stored)
    if running and running.harness is not None and "main" in program.definitions:
        raise ProgramError(f"{name} has a 'main', and so has the harness", "Leave one of them out.")
    return replace(program, running=running)


def read_text(text: str, bindings: Bindings) -> IRProgram:
    """Read a canonical text, as it comes from a store.

    Raises:
        ProgramError: it is malformed, or its assembly could read files.
    """
    program = _printed(text, "the stored program", bindings)
    check_assembly(program.ir)
    try:
        return replace(program, running=running_of(text), linked=linked_of(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ProgramError(f"the stored program does not say how it is run: {error}") from error


def only_function(program: IRProgram, name: str, bindings: Bindings) -> IRProgram:
    """Keep one function, with what it refers to; it is run no more.

    Raises:
        ProgramError: there is no such definition, or it cannot stand alone.
    """
    name = name.removeprefix("@")
    if name not in program.definitions:
        raise ProgramError(f"no function '{name}' is defined", did_you_mean(name, program.definitions))
    found = functions_of(program, bindings, (name,))
    if name not in found:
        raise ProgramError(f"function '{name}' cannot stand alone", "Tune the whole module.")
    return found[name]


def functions_of(
    program: IRProgram, bindings: Bindings, names: Container[str] | None = None
) -> Mapping[str, IRProgram]:
    """Return the functions of a module as modules of their own, by name, in their order.

    Args:
        program: the module.
        bindings: prints the new ones.
        names: which; None for all. One that cannot stand alone is left out.
    """
    from planish.levels.llvm.ir.functions import split_module

    found = SOURCE.search(program.ir)
    source = f"{found[0]}\n" if found else ""
    split = split_module(program.ir)
    return {
        f.name: replace(_printed(source + f.text, f.name, bindings), running=None, backend=program.backend)
        for f in split
        if names is None or f.name in names
    }


def _printed(code: str | bytes, name: str, bindings: Bindings) -> IRProgram:
    """Print a module by the bindings: one text for one module, however it was written."""
    with closing(bindings.parse(code, name)) as module:
        text = _FOLDER.sub(r"\1", _NAMED.sub("", module.text(), count=1), count=1)
        program = IRProgram(text, module.instructions())
    if not program.definitions:
        raise ProgramError(f"{name} defines no function", "Name a module with one at least.")
    return program


def _compiled(path: str, processor: str, bindings: Bindings) -> IRProgram:
    """Compile C for size, and once more for time: clang annotates more for the passes of -O3."""
    read_bytes(path)
    compiler = compiler_of(bindings)
    flags = (flag_of(processor, compiler),) if processor else ()
    small, fast = (_printed(compiler.to_ir(path, flags, level), path, bindings) for level in ("O0", FAST))
    return replace(small, fast=fast)


_UNOPTIMIZED = ("-Xclang", "-disable-llvm-passes")


def read_for_size(source: str, options: Mapping[str, str]) -> IRProgram:
    """Read a module from a `.ll`, `.bc` or `.c` file, or from IR itself.

    C is compiled as `clang -Oz` does it, up to LLVM's passes.

    Args:
        source: the file, or IR.
        options: as `read_program` takes them.

    Raises:
        ProgramError: it is not a module, or cannot be read.
        TargetError: it is C, and no compiler is found.
    """
    name = options.get("backend", "")
    bindings = open_bindings(name)
    if source.endswith(".c"):
        source = compiler_of(bindings).to_ir(source, _UNOPTIMIZED, "Oz")
    return replace(read_program(source, options, bindings), backend=name)
