"""A module with nearly everything that can be in one, C and C++ sources, and what LLVM says of a text."""

from pathlib import Path

import llvmlite.binding as llvm

DATA = Path(__file__).parent / "data"
ODD = (DATA / "odd.ll").read_text()
SOURCES = {"c": DATA / "sample.c", "c++": DATA / "sample.cc"}


def definitions(text: str) -> dict[str, int]:
    """Parse and verify a module; gives the instruction count of each definition."""
    module = llvm.parse_assembly(text, context=llvm.create_context())
    module.verify()
    return {f.name: _count(f) for f in module.functions if not f.is_declaration}


def printed(text: str) -> str:
    """Print a module as LLVM does."""
    return str(llvm.parse_assembly(text, context=llvm.create_context()))


def _count(function: llvm.ValueRef) -> int:
    return sum(1 for block in function.blocks for _ in block.instructions)
