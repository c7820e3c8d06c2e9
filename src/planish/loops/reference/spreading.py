"""Results put where a target's subscripts say, where these are more than axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from planish.loops.lang.program import IDENTITY, Statement, TensorType
from planish.loops.lang.subscripts import collisions, passes
from planish.loops.reference.bounds import Bounded, Precision, settled
from planish.loops.reference.grains import largest_of
from planish.loops.reference.views import Array, view

_UFUNC = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}


def places(
    statement: Statement, out: Array, part: Array, size: Mapping[str, int]
) -> Iterator[tuple[Array, Array]]:
    """List views of a target and what goes there; no view has an element twice.

    Args:
        statement: what is written.
        out: its target.
        part: a dimension for each of the target's axes.
        size: axis to extent.
    """
    axes = statement.output_axes
    for index, fixed in passes(statement.target, size):
        left = [axis for axis in axes if axis not in fixed]
        there = tuple(fixed.get(axis, slice(None)) for axis in axes)
        yield view(out, index, left, size), part[there]


def filled_with(reduce: str | None) -> float:
    """Give what a spread target holds where nothing reaches it."""
    return IDENTITY[reduce or "add"]


def combined(statement: Statement, out: Array, part: Array, size: Mapping[str, int]) -> Array:
    """Put a statement's results into a target that is filled already; gives the target."""
    for target, values in places(statement, out, part, size):
        ufunc = _UFUNC.get(statement.reduce or "")
        target[...] = ufunc(target, values) if ufunc else values
    return out


def spread(
    statement: Statement, part: Bounded, kind: TensorType, size: Mapping[str, int], precision: Precision
) -> Bounded:
    """Put a statement's results in their places in the tensor.

    Args:
        statement: what is written.
        part: what it gives for each point of its target's axes, each with the error of a reduction of as many
            terms as go into an element at most.
        kind: of the target.
        size: axis to extent.
        precision: of the kernel.
    """

    def into(start: float, values: Array) -> Array:
        return combined(statement, np.full(kind.shape, start), values, size)

    start = filled_with(statement.reduce)
    value = into(start, part.value)
    largest = largest_of(value)
    grain = part.grain if statement.reduce != "mul" else 0.0
    if part.error is None and statement.reduce != "mul":
        return Bounded(value, None, grain, max(largest, part.largest))
    if statement.reduce == "mul":
        # The largest that the product can be, less the product itself.
        most = into(1.0, part.magnitude) * (1 + precision.gamma(collisions(statement.target, size)))
        error = most - np.abs(value) + precision.tiny
    elif statement.reduce == "add":
        error = into(0.0, np.broadcast_to(part.errors, part.value.shape))
    else:
        error = _largest(statement, np.zeros(kind.shape), part, size)
    huge = np.isfinite(value) & (np.abs(value) > precision.huge)
    error = np.where(huge, np.inf, error)
    return Bounded(value, settled(value, error, part.unknown), grain, max(largest, part.largest))


def _largest(statement: Statement, out: Array, part: Bounded, size: Mapping[str, int]) -> Array:
    errors = np.broadcast_to(part.errors, part.value.shape)
    for target, values in places(statement, out, errors, size):
        np.maximum(target, values, out=target)
    return out
