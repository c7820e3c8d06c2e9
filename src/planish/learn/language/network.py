"""The encoder: rows of small numbers, one for each instruction, to what each of some lists is worth.

What reads is shared with the network that writes lists, `planish.learn.language.writer`.

A row is the sum of what its columns and its place are embedded as. Rows attend to each other; the mean of
each part (the program as it is, and after the baseline) and counts of all values go to the heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planish.learn.layers import Array, Parameters, fed, mixed, normed, positive

PARTS = 2
HEADS = ("gains", "choice", "saves")
"""What each list saves beside those before it; which one is the best; which ones save anything."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ReaderShape:
    """What makes a network that reads instructions.

    Args:
        sizes: of each column, how many values there are; the first is the part, 0 for padding.
        rows: of an observation.
        lists: how many there are.
        width: of a layer.
        depth: layers.
        heads: of attention; they divide the width.
        kind: tells this shape from those of other policies.
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
    """Observations without what nobody reads.

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
    """Give what the heads say: (programs, heads, lists).

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
