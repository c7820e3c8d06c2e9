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


def attended(xp: ModuleType, heads: int, query: Array, key: Array, value: Array, there: Array) -> Array:
    """Look from some rows at others: (programs, queries, width).

    Args:
        xp: `numpy` or `torch`.
        heads: of attention.
        query: (programs, queries, width).
        key: (programs, rows, width); of one program, where all queries are about the same one.
        value: the same.
        there: (programs, queries, rows) or what broadcasts to it: what is looked at, as 1 and 0.
    """
    part = query.shape[-1] // heads
    asked, keys, values = (
        xp.swapaxes(each.reshape((len(each), each.shape[1], heads, part)), 1, 2)
        for each in (query, key, value)
    )
    close = xp.clip(asked @ xp.swapaxes(keys, 2, 3) / part**0.5, -30, 30)
    weight = xp.exp(close) * there[:, None]
    shared = weight / (weight.sum(axis=-1, keepdims=True) + 1e-9) @ values
    return xp.swapaxes(shared, 1, 2).reshape(query.shape)


def fed(xp: ModuleType, parameters: Parameters, layer: str, hidden: Array) -> Array:
    """Give what a layer's two matrices make of each row by itself.

    Args:
        xp: `numpy` or `torch`.
        parameters: "LAYER up", "LAYER down", and their biases.
        layer: the layer's name.
        hidden: rows.
    """
    up = normed(xp, hidden) @ parameters[f"{layer} up"] + parameters[f"{layer} up bias"]
    return positive(up) @ parameters[f"{layer} down"] + parameters[f"{layer} down bias"]


def positive(hidden: Array) -> Array:
    """Set to 0 what is negative."""
    return hidden * (hidden > 0)


def normed(xp: ModuleType, hidden: Array) -> Array:
    """Give each row the root mean square of 1."""
    return hidden / xp.sqrt((hidden * hidden).mean(axis=-1, keepdims=True) + 1e-5)
