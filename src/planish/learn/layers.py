"""What networks are made of: one definition for arrays of NumPy, and for tensors of torch."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

Array = Any
"""An array of NumPy, or a tensor of torch."""
Parameters = Mapping[str, Array]


def mixed(
    xp: ModuleType, heads: int, mine: Parameters, rows: Array, there: Array, *, fused: bool = False
) -> Array:
    """Attend to the rows that there are.

    Args:
        xp: `numpy` or `torch`.
        heads: of attention.
        mine: the layer's matrices.
        rows: (programs, rows, width).
        there: which rows there are, as 1 and 0.
        fused: by torch's own operator, which never has all weights in memory, and is four times as fast for
            long programs; it does not bound them.
    """
    many, count, width = rows.shape
    parts = (many, count, heads, width // heads)
    query, key, value = (
        xp.swapaxes((rows @ mine[name]).reshape(parts), 1, 2) for name in ("query", "key", "value")
    )
    here = there.reshape((many, 1, 1, count))
    if fused:
        shared = xp.nn.functional.scaled_dot_product_attention(query, key, value, 1e9 * (here - 1))
    else:
        weight = xp.exp(xp.clip(query @ xp.swapaxes(key, 2, 3) / (width // heads) ** 0.5, -30, 30)) * here
        shared = weight / (weight.sum(axis=-1, keepdims=True) + 1e-9) @ value
    return xp.swapaxes(shared, 1, 2).reshape((many, count, width)) @ mine["mixed"]


def positive(hidden: Array) -> Array:
    """Set to 0 what is negative."""
    return hidden * (hidden > 0)


def normed(xp: ModuleType, hidden: Array) -> Array:
    """Give each row the root mean square of 1."""
    return hidden / xp.sqrt((hidden * hidden).mean(axis=-1, keepdims=True) + 1e-5)
