"""Inline assembly of a module: an assembler reads files where a directive says so."""

from __future__ import annotations

import re

from planish.core import ProgramError

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
    """Return a directive of a module's assembly that may read a file; empty where none does.

    Args:
        ir: the module as a back end prints it.
    """
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

    Args:
        ir: the module as a back end prints it.

    Raises:
        ProgramError: it could make the assembler read a file.
    """
    if word := reading_directive(ir):
        what = f"the stored program has the assembler's directive '{word}', which may read any file"
        raise ProgramError(what, "Tune it from its own file.")
