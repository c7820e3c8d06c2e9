"""A StableHLO module as a program: immutable, in normal form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planish.core import ProgramError
from planish.core.regular_files import read_regular


@dataclass(frozen=True)
class Program:
    """A StableHLO module, one function of which is evolved.

    `read_program` and `planish.hlo.from_jax` make them.

    Args:
        text: the module in normal form (see `planish.hlo.ir.load`), verified.
    """

    text: str

    level = "hlo"


def program_from(source: str | bytes, function: str = "", name: str = "the module") -> Program:
    """Make a program of a module; its arguments are named as `planish.hlo.ir.argument_names` does.

    Args:
        source: StableHLO text, MLIR bytecode, or a portable artifact.
        function: which function is evolved; empty for the one that the module names, else `main`.
        name: what messages call the module.

    Raises:
        ProgramError: it is malformed, of another dialect or dynamic shape, or without the function.
    """
    from planish.hlo.ir import load, name_arguments, normal_text

    root = load(source, function, name)
    name_arguments(root)
    return Program(normal_text(root))


def program_again(text: str) -> Program:
    """Make a program of its own text, as it was stored; raises ProgramError where it is malformed."""
    from planish.hlo.ir import load, normal_text

    return Program(normal_text(load(text, name="the stored module")))


def read_program(path: Path, function: str = "") -> Program:
    """Read a program from a file; raises ProgramError as `program_from` does, and where it cannot be read."""
    try:
        source = read_regular(path)
    except OSError as error:
        raise ProgramError(f"cannot read '{path}': {error.strerror}", "Check the path.") from error
    return program_from(source, function, f"'{path}'")
