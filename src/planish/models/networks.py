"""Networks on NumPy arrays and on torch tensors: layers, encoders of programs, networks of policies.

One definition serves both: NumPy arrays, where a network is used, and torch tensors, where it is trained.
They have the same methods here.

The encoder reads a program as rows of small numbers, one for each instruction. A row is the sum of the
embeddings of its columns and of its position. Rows attend to each other; the mean of each part (the program
as it is, and after the baseline) and counts of all values go to the heads, which predict what each list is
worth. The network that writes lists, `planish.models.writer`, has the same encoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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
    """Return what a layer's two matrices make of each row by itself.

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
    """Return each row the root mean square of 1."""
    return hidden / xp.sqrt((hidden * hidden).mean(axis=-1, keepdims=True) + 1e-5)


PARTS = 2
HEADS = ("gains", "choice", "saves")
"""What each list saves beside those before it; which one is the best; which ones save anything."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ReaderShape:
    """Hyperparameters of a network that reads instructions.

    Args:
        sizes: of each column, how many values there are; the first is the part, 0 for padding.
        rows: of an observation.
        lists: how many there are.
        width: of a layer.
        depth: layers.
        heads: of attention; they divide the width.
        kind: distinguishes this shape from those of other policies.
    """

    sizes: tuple[int, ...]
    rows: int
    lists: int
    width: int = 64
    depth: int = 2
    heads: int = 4
    kind: str = "reader"

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name the arrays, and give their shapes; biases are called so."""
        heads = len(HEADS) * self.lists
        return reading_parameters(self) | {"lists": (2 * self.width, heads), "lists bias": (heads,)}


class Reads(Protocol):
    """The part of a shape that reads; see `ReaderShape`."""

    @property
    def sizes(self) -> tuple[int, ...]: ...
    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def heads(self) -> int: ...


def reading_parameters(shape: Reads) -> dict[str, tuple[int, ...]]:
    """Name the arrays of what reads, and give their shapes."""
    width, inner = shape.width, 2 * shape.width
    found: dict[str, tuple[int, ...]] = {"words": (sum(shape.sizes), width), "places": (shape.rows, width)}
    for layer in range(shape.depth):
        found |= {f"{layer} {name}": (width, width) for name in ("query", "key", "value", "mixed")}
        found |= {f"{layer} up": (width, inner), f"{layer} down": (inner, width)}
        found |= {f"{layer} up bias": (inner,), f"{layer} down bias": (width,)}
    counted = PARTS * sum(shape.sizes)
    return found | {"counts": (counted, inner), "head": (PARTS * width, inner), "head bias": (inner,)}


@dataclass(frozen=True)
class PackedRows:
    """Observations without padding.

    Args:
        words: (programs, longest, columns), the places of values among all.
        places: (programs, longest), of rows in the observation.
        parts: (programs, longest, 2), which part a row is of; none for padding.
        counts: (programs, values of both parts), as logarithms.
    """

    words: NDArray[np.int64]
    places: NDArray[np.int64]
    parts: Floats
    counts: Floats


def packed(shape: Reads, observed: NDArray[np.integer]) -> PackedRows:
    """Leave out padding, as far as all programs have it, and count."""
    there = observed[:, :, 0] > 0
    longest = max(1, int(there.sum(axis=1).max()))
    # Stable, for rows stay in the program's order; padding is in their midst where training leaves some out.
    order = np.argsort(~there, axis=1, kind="stable")[:, :longest]
    rows = np.take_along_axis(observed, order[..., None], axis=1).astype(np.int64)
    # All columns share one table, in which each has a range of its own.
    words = rows + np.cumsum((0, *shape.sizes[:-1]))
    parts = (rows[..., :1] == np.arange(1, PARTS + 1)).astype(np.float32)
    counts = np.zeros((len(rows), PARTS, sum(shape.sizes)), np.float32)
    programs, places = np.nonzero(rows[..., 0])
    part = rows[programs, places, 0] - 1
    # `counts[...] += 1` would count equal places once.
    np.add.at(counts, (programs[:, None], part[:, None], words[programs, places]), 1)
    shares = (np.log1p(counts) / 4).reshape(len(rows), -1)
    return PackedRows(words, order, parts, shares.astype(np.float32))


def outputs(
    xp: ModuleType, shape: ReaderShape, parameters: Parameters, given: tuple[Array, Array, Array, Array]
) -> Array:
    """Return what the heads say: (programs, heads, lists).

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: as `ReaderShape.parameters` has them.
        given: what `PackedRows` holds, in its order.
    """
    said = read(xp, shape, parameters, given)[1] @ parameters["lists"] + parameters["lists bias"]
    return said.reshape((len(said), len(HEADS), shape.lists))


def read(
    xp: ModuleType, shape: Reads, parameters: Parameters, given: tuple[Array, Array, Array, Array]
) -> tuple[Array, Array]:
    """Read programs: (programs, longest, width), a row for each instruction, and (programs, 2 * width), all.

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: as `reading_parameters` has them.
        given: what `PackedRows` holds, in its order.
    """
    words, places, parts, counts = given
    there = parts.sum(axis=-1, keepdims=True)
    hidden = parameters["words"][words].sum(axis=-2) + parameters["places"][places]
    for layer in range(shape.depth):
        mine = {name: parameters[f"{layer} {name}"] for name in ("query", "key", "value", "mixed")}
        hidden = hidden + mixed(xp, shape.heads, mine, normed(xp, hidden), there, fused=xp is not np)
        hidden = hidden + fed(xp, parameters, str(layer), hidden)
    rows = normed(xp, hidden)
    # A part without rows has the mean 0.
    means = xp.swapaxes(parts, 1, 2) @ rows / (parts.sum(axis=1)[..., None] + 1e-6)
    whole = means.reshape((len(means), -1)) @ parameters["head"] + counts @ parameters["counts"]
    return rows, positive(whole + parameters["head bias"])


def expected(
    shape: ReaderShape, parameters: Parameters, observed: NDArray[np.integer], at_once: int = 16
) -> Floats:
    """Ask the network by NumPy: (programs, heads, lists)."""
    said = np.zeros((len(observed), len(HEADS), shape.lists), np.float32)
    order = np.argsort((observed[:, :, 0] > 0).sum(axis=1), kind="stable")  # the like together: less padding
    for start in range(0, len(order), at_once):
        rows = order[start : start + at_once]
        one = packed(shape, observed[rows])
        said[rows] = outputs(np, shape, parameters, (one.words, one.places, one.parts, one.counts))
    return said


EDGES, DATA = 20, 4
"""Where the edges of the graph begin in an observation, and how many there are of each loop."""
DERIVED = 7 + DATA
"""Columns that `scaled` adds to those observed."""
KINDS = ("attention", "mlp")
_SPLITS = np.array([4, 8, 16])


@dataclass(frozen=True)
class Shape:
    """Hyperparameters of a network.

    Args:
        kind: "attention", which shares weights over rows, so that it is no matter where in a nest a loop
            stands; or "mlp", the thesis' fully connected layers over all rows at once.
        rows: of an observation.
        columns: of an observation.
        actions: how many there are, the end included.
        width: of a layer.
        depth: layers.
        heads: of attention; they divide the width.
    """

    kind: str
    rows: int
    columns: int
    actions: int
    width: int = 64
    depth: int = 2
    heads: int = 4

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name the arrays, and give their shapes; biases are called so."""
        return _attention_shapes(self) if self.kind == "attention" else _mlp_shapes(self)


def scaled(observed: NDArray[np.int64], left: NDArray[np.float32]) -> NDArray[np.float32]:
    """Make of integers what a network reads; the thesis reads them as they are.

    The innermost loop comes first, for what a kernel is worth depends most on what is inside. Sizes and
    strides are as logarithms, counts as shares. Columns of their own have how many times what is inside a
    loop is executed, how many elements of each tensor it touches, whether a loop can be split evenly by 4, 8
    and 16, the row's presence, and the share of steps that are left.

    Args:
        observed: (candidates, rows, columns), as `planish.levels.loops.space.cursor` has the first of them.
        left: the share of steps that are left, for each candidate.

    Returns:
        (candidates, rows, columns + `DERIVED`).
    """
    seen = _inward(observed)
    size, tail, edges = seen[..., 1], seen[..., 2], seen[..., EDGES : EDGES + DATA]
    # Parts of one array, filled in place: a way asks for one row after the other, and small arrays are dear.
    made = np.empty((*seen.shape[:2], seen.shape[2] + DERIVED), np.float32)
    made[..., :EDGES] = seen[..., :EDGES]
    made[..., 1:3] = np.log2(1 + seen[..., 1:3]) / 8
    made[..., 4:EDGES] /= 4
    made[..., EDGES : EDGES + DATA] = np.log2(1 + edges) / 16
    made[..., EDGES + DATA : -DERIVED] = seen[..., EDGES + DATA :]
    more = made[..., -DERIVED:]
    trips = np.log2(np.maximum(size + (tail > 0), 1))
    more[..., 0] = tail > 0
    # From the innermost loop outward, a sum of logarithms is the logarithm of a product: elements touched so
    # far. Divided, so that columns are of about the size of 1.
    more[..., 1] = np.cumsum(trips, axis=1) / 16
    more[..., 2 : 2 + DATA] = np.cumsum(trips[..., None] * (edges > 0), axis=1) / 8
    more[..., 2 + DATA : -2] = (size[..., None] % _SPLITS == 0) & (tail == 0)[..., None]
    more[..., -2] = 1
    more[..., -1] = left[:, None]
    made[size <= 0] = 0
    return made


def _inward(observed: NDArray[np.int64]) -> NDArray[np.int64]:
    """Put the loops of the nest that the cursor walks in opposite order; other rows stay behind them."""
    rows = np.arange(observed.shape[1])
    count = (observed[..., 3] > 0).sum(axis=1)[:, None]
    places = np.where(rows < count, count - 1 - rows, rows)
    return np.take_along_axis(observed, places[..., None], axis=1)


def scores(xp: ModuleType, shape: Shape, parameters: Parameters, rows: Array) -> Array:
    """Score every action, legal or not.

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: as `Shape.parameters` has them.
        rows: what `scaled` gives.

    Returns:
        (candidates, actions).
    """
    return (_attention if shape.kind == "attention" else _mlp)(xp, shape, parameters, rows)


def _attention_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    width = shape.width
    found: dict[str, tuple[int, ...]] = {
        "rows": (shape.columns + DERIVED, width),
        "rows bias": (width,),
        "places": (shape.rows, width),
    }
    for layer in range(shape.depth):
        found |= {f"{layer} {name}": (width, width) for name in ("query", "key", "value", "mixed")}
        found |= {f"{layer} up": (width, 2 * width), f"{layer} down": (2 * width, width)}
        found |= {f"{layer} up bias": (2 * width,), f"{layer} down bias": (width,)}
    return found | {
        "head": (2 * width, width),
        "head bias": (width,),
        "actions": (width, shape.actions),
        "actions bias": (shape.actions,),
    }


def _mlp_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    sizes = [shape.rows * (shape.columns + DERIVED), *[shape.width] * shape.depth, shape.actions]
    found: dict[str, tuple[int, ...]] = {}
    for layer, (wide, out) in enumerate(pairwise(sizes)):
        found |= {f"{layer}": (wide, out), f"{layer} bias": (out,)}
    return found


def _attention(xp: ModuleType, shape: Shape, parameters: Parameters, rows: Array) -> Array:
    """Let loops see each other; then the one under the cursor, and the mean of all, decide."""
    # Where `scaled` puts a row's presence, and whether the cursor is on it.
    there, cursor = rows[..., -2:-1], rows[..., 0:1]
    hidden = rows @ parameters["rows"] + parameters["rows bias"] + parameters["places"]
    for layer in range(shape.depth):
        mine = {name: parameters[f"{layer} {name}"] for name in ("query", "key", "value", "mixed")}
        hidden = hidden + mixed(xp, shape.heads, mine, normed(xp, hidden), there)
        up = normed(xp, hidden) @ parameters[f"{layer} up"] + parameters[f"{layer} up bias"]
        hidden = hidden + positive(up) @ parameters[f"{layer} down"] + parameters[f"{layer} down bias"]
    # Rows that are only padding must not count in the mean.
    hidden = normed(xp, hidden) * there
    # The small term is for a nest without loops.
    under, mean = (hidden * cursor).sum(axis=1), hidden.sum(axis=1) / (there.sum(axis=1) + 1e-6)
    both = xp.concatenate([under, mean], axis=-1)
    return (
        positive(both @ parameters["head"] + parameters["head bias"]) @ parameters["actions"]
        + (parameters["actions bias"])
    )


def _mlp(xp: ModuleType, shape: Shape, parameters: Parameters, rows: Array) -> Array:
    del xp
    hidden = rows.reshape((rows.shape[0], -1))
    for layer in range(shape.depth):
        hidden = positive(hidden @ parameters[f"{layer}"] + parameters[f"{layer} bias"])
    return hidden @ parameters[f"{shape.depth}"] + parameters[f"{shape.depth} bias"]
