"""Counting instructions in printed IR: llvmlite's iterators take three times as long."""

import re

# In a body, an instruction's first line is indented by two spaces; the other lines of a switch or an invoke,
# and debug records, by more. A switch ends in "  ]".
_INSTRUCTION = re.compile(r"^  [^ \]]", re.MULTILINE)
_UNCOUNTED = re.compile(
    r"^  (?:%\S+ = )?(?:tail |musttail |notail )?call [^\n@]*"
    r"@llvm\.(?:lifetime\.|dbg\.|assume\(|experimental\.noalias\.scope\.decl\()",
    re.MULTILINE,
)


def count(text: str) -> int:
    """Count the instructions that make code, in a module as LLVM prints it."""
    return len(_INSTRUCTION.findall(text)) - len(_UNCOUNTED.findall(text))
