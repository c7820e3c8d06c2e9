"""Tables that are looked up by NumPy, before the rest of a statement is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from planish.loops.lang.program import Access, Apply, Expr, Program, Statement
from planish.loops.lang.subscripts import gathers, parts_of
from planish.loops.reference.elementwise import Step
from planish.loops.reference.views import Array, Arrays, table_view, view

LookedUp = Mapping[Expr, tuple[Access, Array]]
"""Gather to what stands for it, and the array of what is found, with a dimension for each axis."""


def look_ups(statement: Statement, program: Program, arrays: Arrays, steps: list[Step]) -> LookedUp:
    """Add the calls that look up what a statement gathers.

    Args:
        statement: whose value gathers.
        program: of the statement.
        arrays: tensor to elements.
        steps: the calls are added to it.
    """
    found: dict[Expr, tuple[Access, Array]] = {}
    axes = statement.axes
    for each in gathers(statement.value):
        table, _, by = parts_of(each)
        rows = table_view(each, arrays[table.tensor], axes, program.size)
        index = view(arrays[by.tensor], by.index, axes, program.size)
        out = np.empty(np.broadcast_shapes(rows.shape[:-1], index.shape), rows.dtype)
        steps.append(partial(_look_up, rows, index, out))
        found[each] = Access(f"gathered.{len(found)}", (*table.index, *by.index)), out
    return found


def without_gathers(statement: Statement, found: LookedUp) -> Statement:
    """Let a statement read what was looked up."""

    def replaced(expr: Expr) -> Expr:
        if expr in found:
            return found[expr][0]
        return Apply(expr.function, tuple(map(replaced, expr.args))) if isinstance(expr, Apply) else expr

    return replace(statement, value=replaced(statement.value)) if found else statement


def _look_up(table: Array, index: Array, out: Array) -> None:
    """Look up whole rows at once, where the index does not move along them."""
    # As in kernels, what is no number looks up the first.
    number = np.nan_to_num(index, nan=0.0, posinf=None, neginf=None) if index.dtype.kind == "f" else index
    places = np.clip(number, 0, table.shape[-1] - 1).astype(np.intp)
    own = [d for d, n in enumerate(index.shape) if n > 1]
    if any(table.shape[d] > 1 for d in own):
        np.copyto(out, np.take_along_axis(table, places[..., None], -1)[..., 0])
        return
    rest = [d for d in range(index.ndim) if d not in own]
    whole = table[tuple(0 if d in own else slice(None) for d in range(index.ndim))]
    rows = np.moveaxis(whole, -1, 0)[places.reshape([index.shape[d] for d in own])]
    order = [*own, *rest]
    np.copyto(out, rows.transpose([order.index(d) for d in range(index.ndim)]))
