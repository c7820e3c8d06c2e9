"""Operators that are computed in plain code, and what writes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planish.network.copying import (
    COPY,
    WRAP,
    concatenation,
    copy_of,
    element_gather,
    element_scatter,
    gather,
    hot,
    nd_gather,
    nd_scatter,
    wrapping,
)
from planish.network.model import Network, Node
from planish.network.plain import PlainKernel
from planish.network.pointwise import FLOATS, WHOLE, pointwise
from planish.network.recurrent import recurrence
from planish.network.resizing import RESIZED, axis_resize
from planish.network.selecting import (
    INDEXED_POOL,
    WHOLE_REDUCTIONS,
    cumulation,
    extreme,
    indexed_pooling,
    sequence_reversal,
    top,
    trilu,
    whole_reduction,
)

Write = Callable[[Network, Node], PlainKernel]

_OPERATORS: Mapping[str, Write] = {
    **dict.fromkeys(FLOATS, pointwise),
    "ArgMax": extreme,
    "ArgMin": extreme,
    "BitShift": pointwise,
    COPY: copy_of,
    "CumSum": cumulation,
    "GRU": recurrence,
    "GatherElements": element_gather,
    "GatherND": nd_gather,
    "GatherRows": gather,
    INDEXED_POOL: indexed_pooling,
    "Join": concatenation,
    "LSTM": recurrence,
    "OneHot": hot,
    "RNN": recurrence,
    RESIZED: axis_resize,
    "ReverseSequence": sequence_reversal,
    "ScatterElements": element_scatter,
    "ScatterND": nd_scatter,
    "TopK": top,
    "Trilu": trilu,
    WRAP: wrapping,
}
_TYPED: Mapping[str, Write] = {
    **dict.fromkeys(WHOLE, pointwise),
    **dict.fromkeys(WHOLE_REDUCTIONS, whole_reduction),
    "Cast": pointwise,
}
"""The same of operators that have an element type in their name."""


def plain_operator(operator: str) -> Write | None:
    """Return what writes an operator in plain code; None where it is none of these."""
    base, _, kind = operator.partition(" ")
    return (_TYPED if kind else _OPERATORS).get(base) or (_OPERATORS.get(base) if kind else None)
