"""Calls replaced by what they call, so that a function is one list of operations."""

from __future__ import annotations

from collections.abc import Mapping

from jaxlib.mlir._mlir_libs._jax_mlir_ext import inlined_func_call

from planish.core import ProgramError, did_you_mean
from planish.hlo.ir.mlir_context import ir
from planish.hlo.ir.uids import functions, walk

CALL = "func.call"


def inline_calls(root: ir.Operation, name: str) -> None:
    """Inline every call, then drop the private functions.

    Args:
        root: a module; changed.
        name: what messages call it.

    Raises:
        ProgramError: a function calls itself, or one that does not exist.
    """
    known = dict(functions(root))
    for caller in known:
        _inline(caller, known, (), name)
    # After all calls are gone: a function that is erased earlier could not be copied any more.
    for function in known.values():
        if str(function.attributes.get("sym_visibility")) == '"private"':
            function.erase()


def _inline(caller: str, known: Mapping[str, ir.Operation], path: tuple[str, ...], name: str) -> None:
    """Inline the calls of a function, those of what it calls first."""
    if caller in path:
        raise ProgramError(f"function '{caller}' of {name} calls itself", "Give a module without recursion.")
    for call in [op for op in walk(known[caller]) if op.name == CALL]:
        callee = str(call.attributes["callee"]).removeprefix("@")
        if callee not in known:
            raise ProgramError(f"{name} has no function '{callee}'", did_you_mean(callee, known))
        # What is called first: then its body is inlined once, and copied without calls.
        _inline(callee, known, (*path, caller), name)
        _replace(call, known[callee])


def _replace(call: ir.Operation, callee: ir.Operation) -> None:
    with ir.InsertionPoint(call), call.location:
        results = inlined_func_call(callee, list(call.operands))
    for old, new in zip(call.results, results, strict=True):
        old.replace_all_uses_with(new)
    call.erase()
