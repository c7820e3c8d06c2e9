"""Programs of JAX functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planish.core import TargetError
from planish.hlo.program import Program, program_from


def from_jax(fn: Callable[..., Any], *args: Any) -> Program:
    """Make a program of a JAX function; its `main` takes and gives the leaves of the function's trees.

    Args:
        fn: a function of arrays and trees of arrays.
        args: its arguments, or their `jax.ShapeDtypeStruct`; only shapes and types count.

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
