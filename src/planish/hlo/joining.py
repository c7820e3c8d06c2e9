"""Several functions in one module."""

from __future__ import annotations

from planish.core import ProgramError
from planish.hlo.ir import context, functions, ir, load, normal_text
from planish.hlo.program import Program


def with_function(program: Program, name: str, other: Program) -> Program:
    """Add the `main` of another program to a module, which keeps evolving what it did.

    Args:
        program: the module that is added to.
        name: what the new function is called.
        other: whose `main` it is; a function that scores what the module trains, for instance.

    Raises:
        ProgramError: the module has a function of this name, or the other has no `main`.
    """
    root, source = load(program.text), load(other.text)
    if name in dict(functions(root)):
        raise ProgramError(f"the module has a function '{name}' already", "Choose another name.")
    if "main" not in dict(functions(source)):
        raise ProgramError("the other module has no function 'main'")
    with ir.InsertionPoint(root.regions[0].blocks[0]):
        added = dict(functions(source))["main"].clone()
    added.attributes["sym_name"] = ir.StringAttr.get(name, context())
    return Program(normal_text(root))
