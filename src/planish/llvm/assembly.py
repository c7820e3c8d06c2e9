"""Assembly within a module that comes from a store: an assembler reads files where it is told to."""

from __future__ import annotations

import re

from planish.core import ProgramError

_ASSEMBLY = re.compile(r'\basm\b[^"\n]*"((?:[^"\\]|\\.)*)"')
# LLVM writes quotes, and what cannot be printed, as a backslash and two hexadecimal digits.
_ESCAPE = re.compile(r"\\([0-9a-fA-F]{2})")
_WORD = re.compile(r"(?<![\w.$])\.([\w$.\\]*)")
_HARMLESS = re.compile(
    r"L[\w.$]*|align|balign|p2align|ascii|asciz|byte|cfi_\w+|code16|code32|code64|comm|data|globl|global|hidden"
    r"|hword|ident|int|intel_syntax|att_syntax|internal|local|long|octa|popsection|previous|protected"
    r"|pushsection|quad|rodata|bss|section|short|size|skip|space|string|subsection|symver|text|type|value|weak"
    r"|word|zero"
)
"""Directives that real code has. `.incbin` and `.include` read files; macros can spell them in pieces."""


def check_assembly(ir: str) -> None:
    """Refuse a module whose assembly has directives other than harmless ones.

    Args:
        ir: the module as a back end prints it.

    Raises:
        ProgramError: it could make the assembler read a file.
    """
    for text in _ASSEMBLY.findall(ir):
        # Unescaped first: '.incbin' may be written with a backslash and digits, and LLVM reads it all the
        # same.
        plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
        for word in _WORD.findall(plain):
            # A list of what is allowed, not of what is forbidden: new directives that read files may come.
            if not _HARMLESS.fullmatch(word):
                what = f"the stored program has the assembler's directive '.{word}', which may read any file"
                raise ProgramError(what, "Tune it from its own file.")
