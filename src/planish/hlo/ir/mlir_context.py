"""The one MLIR context of this process: its dialects, and no threads, so that the process may fork."""

from __future__ import annotations

from functools import cache

from planish.core import TargetError

try:
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, func, sdy, stablehlo
except ImportError as error:
    raise TargetError(
        "the level 'hlo' needs jaxlib", "Install it with: pip install 'planish[hlo]'"
    ) from error

__all__ = ["context", "func", "ir", "stablehlo"]


@cache
def context() -> ir.Context:
    """Give the context that all modules of this process live in; it is made once and kept."""
    made = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made.append_dialect_registry(registry)
    stablehlo.register_dialect(made)
    chlo.register_dialect(made)
    sdy.register_dialect(made)
    made.enable_multithreading(False)
    return made
