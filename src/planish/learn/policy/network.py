"""The networks of policies: from what is observed to a score of each action.

One definition serves both: arrays of NumPy, where a policy is used, and tensors of torch, where it is learnt.
They have the same methods here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from planish.learn.layers import Array, Parameters, mixed, normed, positive

EDGES, DATA = 20, 4
"""Where the edges of the graph begin in an observation, and how many there are of each loop."""
DERIVED = 7 + DATA
"""Columns that `scaled` adds to those observed."""
KINDS = ("attention", "mlp")
_SPLITS = np.array([4, 8, 16])


@dataclass(frozen=True)
class Shape:
    """What makes a network.

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
    strides are as logarithms, counts as shares. Columns of their own tell how many times what is inside a
    loop is executed, how many elements of each tensor it touches, whether a loop can be split evenly by 4, 8
    and 16, the row's presence, and the share of steps that are left.

    Args:
        observed: (candidates, rows, columns), as `planish.loops.space.cursor` has the first of them.
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
