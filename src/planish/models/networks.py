"""Networks on NumPy arrays and on torch tensors: layers, encoders of programs, networks of policies.

One definition serves both: NumPy arrays, where a network is used, and torch tensors, where it is trained.
They have the same methods here.

The encoder reads a program as rows of small numbers, one for each instruction. A row is the sum of the
embeddings of its columns and of its position. Rows attend to each other; the mean of each segment (the
program as it is, and after the baseline) and counts of all values go to the heads, which predict what each
list is worth. The network that writes lists, `planish.models.writer`, has the same encoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = Any
"""An array of NumPy, or a tensor of torch."""
Parameters = Mapping[str, Array]


MATRICES = ("query", "key", "value", "mixed")
"""The matrices of a layer's attention; the last one is applied to what is attended to."""


def layer_parameters(name: str, width: int, attentions: Sequence[str] = ("",)) -> dict[str, tuple[int, ...]]:
    """Return the names of a layer's arrays, and their shapes.

    Args:
        name: of the layer.
        width: of its rows.
        attentions: names of its attentions, each with a space after it.
    """
    inner, square = 2 * width, (width, width)
    found = {f"{name} {attention}{matrix}": square for attention in attentions for matrix in MATRICES}
    found |= {f"{name} up": (width, inner), f"{name} down": (inner, width)}
    return {**found, f"{name} up bias": (inner,), f"{name} down bias": (width,)}


def self_attention(
    xp: ModuleType,
    heads: int,
    parameters: Parameters,
    layer: int,
    rows: Array,
    there: Array,
    *,
    fused: bool = False,
) -> Array:
    """Attend from rows to all rows of the same program.

    Args:
        xp: `numpy` or `torch`.
        heads: of attention.
        parameters: of the network.
        layer: whose attention it is.
        rows: (programs, rows, width).
        there: (programs, rows, 1), which rows there are, as 1 and 0.
        fused: by torch's own operator, which never has all weights in memory, and is four times as fast for
            long programs; it does not bound them.
    """
    many, count, width = rows.shape
    query, key, value = (rows @ parameters[f"{layer} {name}"] for name in MATRICES[:3])
    if not fused:
        there = there.reshape((many, 1, count))
        return attention(xp, heads, query, key, value, there) @ parameters[f"{layer} mixed"]
    parts = (many, count, heads, width // heads)
    query, key, value = (xp.swapaxes(each.reshape(parts), 1, 2) for each in (query, key, value))
    masked = 1e9 * (there.reshape((many, 1, 1, count)) - 1)
    shared = xp.nn.functional.scaled_dot_product_attention(query, key, value, masked)
    return xp.swapaxes(shared, 1, 2).reshape(rows.shape) @ parameters[f"{layer} mixed"]


def attention(xp: ModuleType, heads: int, query: Array, key: Array, value: Array, there: Array) -> Array:
    """Attend from some rows to others: (programs, queries, width).

    Args:
        xp: `numpy` or `torch`.
        heads: of attention.
        query: (programs, queries, width).
        key: (programs, rows, width); of one program, where all queries are about the same one.
        value: the same.
        there: (programs, queries, rows) or what broadcasts to it: what is attended to, as 1 and 0.
    """
    part = query.shape[-1] // heads
    queries, keys, values = (
        xp.swapaxes(each.reshape((len(each), each.shape[1], heads, part)), 1, 2)
        for each in (query, key, value)
    )
    close = xp.clip(queries @ xp.swapaxes(keys, 2, 3) / part**0.5, -30, 30)
    weight = xp.exp(close) * there[:, None]
    shared = weight / (weight.sum(axis=-1, keepdims=True) + 1e-9) @ values
    return xp.swapaxes(shared, 1, 2).reshape(query.shape)


def feed_forward(xp: ModuleType, parameters: Parameters, layer: str, hidden: Array) -> Array:
    """Return a layer's two matrices applied to each row.

    Args:
        xp: `numpy` or `torch`.
        parameters: "LAYER up", "LAYER down", and their biases.
        layer: the layer's name.
        hidden: rows.
    """
    up = rms_norm(xp, hidden) @ parameters[f"{layer} up"] + parameters[f"{layer} up bias"]
    return relu(up) @ parameters[f"{layer} down"] + parameters[f"{layer} down bias"]


def relu(hidden: Array) -> Array:
    """Set to 0 what is negative."""
    return hidden * (hidden > 0)


def rms_norm(xp: ModuleType, hidden: Array) -> Array:
    """Scale each row to a root mean square of 1."""
    return hidden / xp.sqrt((hidden * hidden).mean(axis=-1, keepdims=True) + 1e-5)


SEGMENTS = 2
"""Of an observation: the program as it is, and after the baseline."""
HEADS = ("gains", "choice", "saves")
"""Targets: what each list saves beside those before it; the best one; those that save anything."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class EncoderShape:
    """Hyperparameters of a network that reads instructions.

    Args:
        sizes: of each column, how many values there are; the first is the segment, 0 for padding.
        rows: of an observation.
        width: of a layer.
        depth: layers.
        heads: of attention; they divide the width.
    """

    sizes: tuple[int, ...]
    rows: int
    width: int = 64
    depth: int = 2
    heads: int = 4

    def encoder_parameters(self) -> dict[str, tuple[int, ...]]:
        """Return the names of the encoder's arrays, and their shapes."""
        width, values = self.width, sum(self.sizes)
        found: dict[str, tuple[int, ...]] = {"words": (values, width), "positions": (self.rows, width)}
        for layer in range(self.depth):
            found |= layer_parameters(str(layer), width)
        found |= {"counts": (SEGMENTS * values, 2 * width), "head": (SEGMENTS * width, 2 * width)}
        return found | {"head bias": (2 * width,)}


@dataclass(frozen=True, kw_only=True)
class ReaderShape(EncoderShape):
    """Hyperparameters of a network that ranks lists.

    Args:
        sizes, rows, width, depth, heads: see `EncoderShape`.
        lists: how many there are.
        kind: distinguishes this shape from those of other policies.
    """

    lists: int
    kind: str = "reader"

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Return the names of the arrays, and their shapes; biases are called so."""
        heads = len(HEADS) * self.lists
        return self.encoder_parameters() | {"lists": (2 * self.width, heads), "lists bias": (heads,)}


class PackedRows(NamedTuple):
    """Observations without padding, as arrays of NumPy or tensors of torch.

    Args:
        words: (programs, longest, columns), the indices of values among all.
        positions: (programs, longest), of rows in the observation.
        segments: (programs, longest, 2), which segment a row is of; none for padding.
        counts: (programs, values of both segments), as logarithms.
    """

    words: Array
    positions: Array
    segments: Array
    counts: Array


def pack_rows(shape: EncoderShape, observed: NDArray[np.integer]) -> PackedRows:
    """Leave out padding, as far as all programs have it, and count."""
    there = observed[:, :, 0] > 0
    longest = max(1, int(there.sum(axis=1).max()))
    # Stable, for rows stay in the program's order; padding is in their midst where training leaves some out.
    order = np.argsort(~there, axis=1, kind="stable")[:, :longest]
    rows = np.take_along_axis(observed, order[..., None], axis=1).astype(np.int64)
    # All columns share one table, in which each has a range of its own.
    words = rows + np.cumsum((0, *shape.sizes[:-1]))
    segments = (rows[..., :1] == np.arange(1, SEGMENTS + 1)).astype(np.float32)
    counts = np.zeros((len(rows), SEGMENTS, sum(shape.sizes)), np.float32)
    programs, positions = np.nonzero(rows[..., 0])
    segment = rows[programs, positions, 0] - 1
    # `counts[...] += 1` would count equal indices once.
    np.add.at(counts, (programs[:, None], segment[:, None], words[programs, positions]), 1)
    shares = (np.log1p(counts) / 4).reshape(len(rows), -1)
    return PackedRows(words, order, segments, shares.astype(np.float32))


def list_scores(xp: ModuleType, shape: ReaderShape, parameters: Parameters, packed: PackedRows) -> Array:
    """Return the outputs of the heads: (programs, heads, lists).

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: as `ReaderShape.parameters` has them.
        packed: the programs.
    """
    found = encode(xp, shape, parameters, packed)[1] @ parameters["lists"] + parameters["lists bias"]
    return found.reshape((len(found), len(HEADS), shape.lists))


def encode(
    xp: ModuleType, shape: EncoderShape, parameters: Parameters, packed: PackedRows
) -> tuple[Array, Array]:
    """Encode programs.

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: as `EncoderShape.encoder_parameters` has them.
        packed: the programs.

    Returns:
        (programs, longest, width), a row for each instruction, and (programs, 2 * width), of the whole.
    """
    there = packed.segments.sum(axis=-1, keepdims=True)
    hidden = parameters["words"][packed.words].sum(axis=-2) + parameters["positions"][packed.positions]
    for layer in range(shape.depth):
        rows = rms_norm(xp, hidden)
        hidden = hidden + self_attention(xp, shape.heads, parameters, layer, rows, there, fused=xp is not np)
        hidden = hidden + feed_forward(xp, parameters, str(layer), hidden)
    rows = rms_norm(xp, hidden)
    # A segment without rows has the mean 0.
    means = xp.swapaxes(packed.segments, 1, 2) @ rows / (packed.segments.sum(axis=1)[..., None] + 1e-6)
    whole = means.reshape((len(means), -1)) @ parameters["head"] + packed.counts @ parameters["counts"]
    return rows, relu(whole + parameters["head bias"])


def predict_lists(
    shape: ReaderShape, parameters: Parameters, observed: NDArray[np.integer], at_once: int = 16
) -> Floats:
    """Ask the network by NumPy: (programs, heads, lists)."""
    found = np.zeros((len(observed), len(HEADS), shape.lists), np.float32)
    order = np.argsort((observed[:, :, 0] > 0).sum(axis=1), kind="stable")  # the like together: less padding
    for start in range(0, len(order), at_once):
        rows = order[start : start + at_once]
        found[rows] = list_scores(np, shape, parameters, pack_rows(shape, observed[rows]))
    return found


EDGES, DATA, CONTEXT = 20, 4, 9
"""Position of the graph's edges in an observation, and the numbers of edges and of context columns."""
DERIVED = 7 + DATA
"""Columns that `scaled` adds to those observed."""
KINDS = ("attention", "mlp")
_SPLITS = np.array([4, 8, 16])


@dataclass(frozen=True)
class Shape:
    """Hyperparameters of a network.

    Args:
        kind: "attention", which shares weights over rows, so that it does not matter where in a nest a loop
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
        """Return the names of the arrays, and their shapes; biases are called so."""
        return _attention_shapes(self) if self.kind == "attention" else _mlp_shapes(self)


def scaled(observed: NDArray[np.int64], left: NDArray[np.float32]) -> NDArray[np.float32]:
    """Make of integers what a network reads; the thesis reads them as they are.

    The innermost loop comes first, for what a kernel is worth depends most on what is inside. Sizes,
    strides and the context are as logarithms, counts as shares. Columns of their own have how many times
    what is inside a loop is executed, how many elements of each tensor it touches, whether a loop can be
    split evenly by 4, 8 and 16, the row's presence, and the share of steps that are left.

    Args:
        observed: (candidates, rows, columns), as `planish.levels.loops.space.cursor` has the first of them.
        left: the share of steps that are left, for each candidate.

    Returns:
        (candidates, rows, columns + `DERIVED`).
    """
    # Loops of the nest that the cursor walks in opposite order; other rows stay behind them.
    loops, number = (observed[..., 3] > 0).sum(axis=1)[:, None], np.arange(observed.shape[1])
    inward = np.where(number < loops, loops - 1 - number, number)
    seen = np.take_along_axis(observed, inward[..., None], axis=1)
    size, tail, edges = seen[..., 1], seen[..., 2], seen[..., EDGES : EDGES + DATA]
    # Views of one array: a rollout asks for one row after the other, and small arrays are slow.
    made = np.empty((*seen.shape[:2], seen.shape[2] + DERIVED), np.float32)
    made[..., :EDGES] = seen[..., :EDGES]
    made[..., 1:3] = np.log2(1 + seen[..., 1:3]) / 8
    made[..., 4:EDGES] /= 4
    made[..., EDGES : EDGES + DATA] = np.log2(1 + edges) / 16
    context, rest = EDGES + DATA, EDGES + DATA + CONTEXT
    made[..., context:rest] = np.log2(1 + seen[..., context:rest]) / 16
    made[..., rest:-DERIVED] = seen[..., rest:]
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


def scores(xp: ModuleType, shape: Shape, parameters: Parameters, rows: Array) -> Array:
    """Score every action, legal or not.

    Args:
        xp: `numpy` or `torch`.
        shape: of the network.
        parameters: as `Shape.parameters` has them.
        rows: as `scaled` returns them.

    Returns:
        (candidates, actions).
    """
    return (_attention if shape.kind == "attention" else _mlp)(xp, shape, parameters, rows)


def _attention_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    width = shape.width
    found: dict[str, tuple[int, ...]] = {
        "rows": (shape.columns + DERIVED, width),
        "rows bias": (width,),
        "positions": (shape.rows, width),
    }
    for layer in range(shape.depth):
        found |= layer_parameters(str(layer), width)
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
    hidden = rows @ parameters["rows"] + parameters["rows bias"] + parameters["positions"]
    for layer in range(shape.depth):
        rows = rms_norm(xp, hidden)
        hidden = hidden + self_attention(xp, shape.heads, parameters, layer, rows, there)
        # As `feed_forward`, but added in another order: the last digits of trained networks depend on it.
        up = rms_norm(xp, hidden) @ parameters[f"{layer} up"] + parameters[f"{layer} up bias"]
        hidden = hidden + relu(up) @ parameters[f"{layer} down"] + parameters[f"{layer} down bias"]
    # Rows that are only padding must not count in the mean.
    hidden = rms_norm(xp, hidden) * there
    # The small term is for a nest without loops.
    under, mean = (hidden * cursor).sum(axis=1), hidden.sum(axis=1) / (there.sum(axis=1) + 1e-6)
    both = xp.concatenate([under, mean], axis=-1)
    return (
        relu(both @ parameters["head"] + parameters["head bias"]) @ parameters["actions"]
        + (parameters["actions bias"])
    )


def _mlp(_xp: ModuleType, shape: Shape, parameters: Parameters, rows: Array) -> Array:
    hidden = rows.reshape((rows.shape[0], -1))
    for layer in range(shape.depth):
        hidden = relu(hidden @ parameters[f"{layer}"] + parameters[f"{layer} bias"])
    return hidden @ parameters[f"{shape.depth}"] + parameters[f"{shape.depth} bias"]
