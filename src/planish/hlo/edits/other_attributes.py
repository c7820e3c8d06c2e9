"""Other attributes for an operation, of which most keep its types; verifying tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from planish.core import ScheduleError
from planish.hlo.edits.random_choices import pick
from planish.hlo.ir import ir

if TYPE_CHECKING:
    from numpy.random import Generator

Attributes = tuple[tuple[str, str], ...]

COMPARISONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


def other_attributes(op: ir.Operation, rng: Generator) -> Attributes:
    """Draw new attributes for one of the `CHANGEABLE`; raises ScheduleError where it has none to change."""
    return _CHANGES[op.name](op, rng)


def _compare(op: ir.Operation, rng: Generator) -> Attributes:
    old = str(op.attributes["comparison_direction"])
    others = [name for name in COMPARISONS if f" {name}>" not in old]
    return (("comparison_direction", f"#stablehlo<comparison_direction {pick(others, rng)}>"),)


def _slice(op: ir.Operation, rng: Generator) -> Attributes:
    """Shift the window along one dimension."""
    starts, limits = (_integers(op, name) for name in ("start_indices", "limit_indices"))
    extents = op.operands[0].type.shape
    shifts = [(d, s) for d, n in enumerate(extents) for s in range(-starts[d], n - limits[d] + 1) if s]
    dimension, shift = pick(shifts, rng)
    for bounds in (starts, limits):
        bounds[dimension] += shift
    return (("start_indices", _array(starts)), ("limit_indices", _array(limits)))


def _pad(op: ir.Operation, rng: Generator) -> Attributes:
    """Shift the content along one dimension."""
    low, high = (_integers(op, name) for name in ("edge_padding_low", "edge_padding_high"))
    dimension, shift = pick([(d, s) for d in range(len(low)) for s in range(-low[d], high[d] + 1) if s], rng)
    low[dimension] += shift
    high[dimension] -= shift
    return (("edge_padding_low", _array(low)), ("edge_padding_high", _array(high)))


def _convolution(op: ir.Operation, rng: Generator) -> Attributes:
    """Turn the kernel round along one dimension, or shift the padding by one."""
    rank = len(op.results[0].type.shape) - 2
    if rank < 1:
        raise ScheduleError("this convolution has no window")
    dimension = int(rng.integers(rank))
    if rng.random() < 0.5 or "padding" not in op.attributes:
        reversed_ = [str(flag).lower() for flag in _flags(op, rank, dimension)]
        return (("window_reversal", f"array<i1: {', '.join(reversed_)}>"),)
    import numpy as np

    padding = np.array(op.attributes["padding"]).reshape(rank, 2)
    padding[dimension] += pick(([1, -1], [-1, 1]), rng)
    return (("padding", f"dense<{padding.tolist()}> : tensor<{rank}x2xi64>"),)


def _flags(op: ir.Operation, rank: int, dimension: int) -> list[bool]:
    old = op.attributes.get("window_reversal")
    flags = list(old) if isinstance(old, ir.DenseBoolArrayAttr) else [False] * rank
    flags[dimension] = not flags[dimension]
    return flags


def _order(name: str) -> Callable[[ir.Operation, Generator], Attributes]:
    """Exchange two entries of a list of dimensions."""

    def change(op: ir.Operation, rng: Generator) -> Attributes:
        order = _integers(op, name)
        if len(order) < 2:
            raise ScheduleError("there is nothing to exchange")
        i, j = (int(place) for place in rng.choice(len(order), 2, replace=False))
        order[i], order[j] = order[j], order[i]
        return ((name, _array(order)),)

    return change


def _iota(op: ir.Operation, rng: Generator) -> Attributes:
    old = op.attributes["iota_dimension"]
    assert isinstance(old, ir.IntegerAttr)
    others = [d for d in range(len(op.results[0].type.shape)) if d != old.value]
    return (("iota_dimension", f"{pick(others, rng)} : i64"),)


_CHANGES: Mapping[str, Callable[[ir.Operation, Generator], Attributes]] = {
    "stablehlo.compare": _compare,
    "stablehlo.slice": _slice,
    "stablehlo.pad": _pad,
    "stablehlo.convolution": _convolution,
    "stablehlo.transpose": _order("permutation"),
    "stablehlo.broadcast_in_dim": _order("broadcast_dimensions"),
    "stablehlo.iota": _iota,
}
CHANGEABLE = frozenset(_CHANGES)
"""Operations that may have an attribute to change."""


def _integers(op: ir.Operation, name: str) -> list[int]:
    array = op.attributes[name]
    assert isinstance(array, ir.DenseI64ArrayAttr)
    return list(array)


def _array(values: list[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"
