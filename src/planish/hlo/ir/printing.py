"""Verified modules as text."""

from __future__ import annotations

from planish.hlo.ir.mlir_context import ir


def printed(root: ir.Operation | ir.OpView) -> str:
    """Print a verified module; attributes stand where they are used, with no aliases before it."""
    # To look for what deserves an alias takes an eighth of the time of printing.
    text = root.operation.get_asm(assume_verified=True, use_local_scope=True)
    assert isinstance(text, str)
    return f"{text}\n"
