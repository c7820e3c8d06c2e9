"""Programs: StableHLO modules in normal form, made of files, text or JAX functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planish.core import ProgramError, TargetError
from planish.core.files import read_regular


@dataclass(frozen=True)
class Program:
    """A StableHLO module, one function of which is evolved.

    `read_program` and `planish.levels.hlo.from_jax` make them.

    Args:
        text: the module in normal form (see `planish.levels.hlo.ir.load`), verified.
    """

    text: str

    level = "hlo"


def program_from(source: str | bytes, function: str = "", name: str = "the module") -> Program:
    """Make a program of a module; its arguments are named as `planish.levels.hlo.ir.argument_names` does.

    Args:
        source: StableHLO text, MLIR bytecode, or a portable artifact.
        function: which function is evolved; empty for the one that the module names, else `main`.
        name: what messages call the module.

    Raises:
        ProgramError: it is malformed, of another dialect or dynamic shape, or without the function.
    """
    from planish.levels.hlo.ir.normal import load, name_arguments, normal_text

    root = load(source, function, name)
    name_arguments(root)
    return Program(normal_text(root))


def program_again(text: str) -> Program:
    """Make a program of its own text, as it was stored; raises ProgramError where it is malformed."""
    from planish.levels.hlo.ir.normal import load, normal_text

    return Program(normal_text(load(text, name="the stored module")))


def read_program(path: Path, function: str = "") -> Program:
    """Read a program from a file; raises ProgramError as `program_from` does, and where it cannot be read."""
    try:
        source = read_regular(path)
    except OSError as error:
        raise ProgramError(f"cannot read '{path}': {error.strerror}", "Check the path.") from error
    return program_from(source, function, f"'{path}'")


def from_jax(fn: Callable[..., Any], *args: Any) -> Program:
    """Make a program of a JAX function; its `main` takes and gives the leaves of the function's trees.

    Args:
        fn: a function of arrays and trees of arrays.

    Returns:
        The program; names given by `jax.named_scope` become those of its layers, and an argument that is the
        entry "w" of the entry "fc1" of a dictionary is named "fc1.w".

    Raises:
        TargetError: JAX is not installed.
        ProgramError: the function's module cannot be evolved: a dynamic shape, another dialect.
    """
    try:
        import jax
    except ImportError as error:
        raise TargetError("JAX is not installed", "Install it with: pip install jax") from error
    # Unused arguments stay, so that the module takes what the function takes.
    lowered = jax.jit(fn, keep_unused=True).lower(*args)
    text = lowered.as_text(dialect="stablehlo", debug_info=True)
    return program_from(text, name=f"the module of {getattr(fn, '__name__', 'the function')}")


def with_function(program: Program, name: str, other: Program) -> Program:
    """Add the `main` of another program to a module, which keeps evolving what it did.

    Args:
        program: the module that is added to.
        name: what the new function is called.

    Raises:
        ProgramError: the module has a function of this name, or the other has no `main`.
    """
    from planish.levels.hlo.ir.mlir import context, functions, ir
    from planish.levels.hlo.ir.normal import load, normal_text

    root, source = load(program.text), load(other.text)
    if name in dict(functions(root)):
        raise ProgramError(f"the module has a function '{name}' already", "Choose another name.")
    if "main" not in dict(functions(source)):
        raise ProgramError("the other module has no function 'main'")
    with ir.InsertionPoint(root.regions[0].blocks[0]):
        added = dict(functions(source))["main"].clone()
    added.attributes["sym_name"] = ir.StringAttr.get(name, context())
    return Program(normal_text(root))
