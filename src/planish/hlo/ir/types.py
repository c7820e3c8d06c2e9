"""Tensor types as plain values, which need no context."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from planish.hlo.ir.mlir_context import context, ir

FLOAT_BITS = {"f64": 64, "f32": 32, "bf16": 16, "f16": 16}
"""How wide the element types with fractions are that modules compute with."""
_PLAIN = re.compile(r"(bf|f|u?i)\d+")


@dataclass(frozen=True)
class TensorType:
    """The shape and the element type of a value.

    Args:
        shape: extents, outermost first; empty for a scalar.
        element: as MLIR writes it: "f32", "i1", "ui8", "complex<f32>".
    """

    shape: tuple[int, ...]
    element: str

    @property
    def plain(self) -> bool:
        """Whether the elements are floats or integers, which can be padded and converted."""
        return bool(_PLAIN.fullmatch(self.element))

    def __str__(self) -> str:
        return f"tensor<{'x'.join(map(str, (*self.shape, self.element)))}>"


@cache
def tensor_type(type_: ir.Type) -> TensorType | None:
    """Read an MLIR type; None for what is no ranked tensor of static shape (tokens, tuples)."""
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return None
    return TensorType(tuple(type_.shape), str(type_.element_type))


@cache
def mlir_type(type_: TensorType) -> ir.Type:
    """Make the MLIR type."""
    return ir.Type.parse(str(type_), context())
