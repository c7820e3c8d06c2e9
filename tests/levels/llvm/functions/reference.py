"""What LLVM itself says of a text, by llvmlite's parser and verifier."""

import llvmlite.binding as llvm


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
