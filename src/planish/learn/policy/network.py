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

DERIVED = 5
"""Columns that `scaled` adds to those observed."""
KINDS = ("attention", "mlp")


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

    Sizes are as logarithms, counts as shares; whether a loop can be split evenly by 4, 8 and 16, the row's
    presence, and the share of steps that are left, are columns of their own.

    Args:
        observed: (candidates, rows, columns), the first of which are cursor, size, tail and nest.
        left: the share of steps that are left, for each candidate.

    Returns:
        (candidates, rows, columns + 5).
    """
    size, tail = observed[..., 1], observed[..., 2]
    there = (size > 0).astype(np.float32)
    whole = [((size % by == 0) & (tail == 0) & (size > 0)).astype(np.float32) for by in (4, 8, 16)]
    head = [observed[..., 0], np.log2(1 + size) / 8, np.log2(1 + tail) / 8, observed[..., 3]]
    rest = np.moveaxis(observed[..., 4:] / 4, -1, 0)
    share = np.broadcast_to(left[:, None], size.shape) * there
    return np.stack([*head, *rest, *whole, there, share], axis=-1).astype(np.float32)


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
    there, cursor = rows[..., -2:-1], rows[..., 0:1]
    hidden = rows @ parameters["rows"] + parameters["rows bias"] + parameters["places"]
    for layer in range(shape.depth):
        mine = {name: parameters[f"{layer} {name}"] for name in ("query", "key", "value", "mixed")}
        hidden = hidden + mixed(xp, shape.heads, mine, normed(xp, hidden), there)
        up = normed(xp, hidden) @ parameters[f"{layer} up"] + parameters[f"{layer} up bias"]
        hidden = hidden + positive(up) @ parameters[f"{layer} down"] + parameters[f"{layer} down bias"]
    hidden = normed(xp, hidden) * there
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
