"""Elements of four integers as their integers: what the reference, inputs and NumPy compute with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import numpy as np

from planish.levels.loops.lang.draft import fresh
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import (
    QINT8,
    QUADS,
    QUINT8,
    UINT8X4,
    Access,
    Expr,
    Index,
    Program,
    TensorType,
    rewritten,
)
from planish.levels.loops.reference.views import Array, Arrays

if TYPE_CHECKING:
    from planish.levels.loops.reference.cases import Case

_P = ParamSpec("_P")


def over_integers(program: Program) -> Program:
    """Return the program over integers, with one more axis; one without such elements as it is."""
    quads = [name for name, kind in program.types if kind.dtype in QUADS]
    if not quads:
        return program
    axis = fresh("q", set(program.size))

    def widened(expr: Expr) -> Expr | None:
        if isinstance(expr, Access) and expr.tensor in quads:
            return replace(expr, index=(*expr.index, Index(((axis, 1),))))
        return None

    def kind(name: str, given: TensorType) -> TensorType:
        if name not in quads:
            return given
        return TensorType((*given.shape, 4), QUINT8 if given.dtype == UINT8X4 else QINT8)

    return replace(
        program,
        statements=tuple(replace(s, value=rewritten(s.value, widened)) for s in program.statements),
        sizes=tuple(sorted({**program.size, axis: 4}.items())),
        types=tuple((name, kind(name, given)) for name, given in program.types),
    )


def integers_of(program: Program, arrays: Arrays) -> dict[str, Array]:
    """View elements of four integers as integers, along one dimension more."""
    return {name: _view(program, name, array) for name, array in arrays.items()}


def _view(program: Program, name: str, array: Array) -> Array:
    dtype = program.type[name].dtype
    if dtype not in QUADS:
        return array
    return array.view(np.uint8 if dtype == UINT8X4 else np.int8).reshape(*array.shape, 4)


def elements_of(program: Program, arrays: Arrays) -> dict[str, Array]:
    """Make the arrays of a program of those of `over_integers`."""
    found = dict(arrays)
    for name, array in arrays.items():
        if (kind := program.type[name]).dtype in QUADS:
            found[name] = np.ascontiguousarray(array).view(numpy_type(kind.dtype)).reshape(kind.shape)
    return found


def chosen_over_integers(
    choose: Callable[Concatenate[Program, _P], list[Case]],
) -> Callable[Concatenate[Program, _P], list[Case]]:
    """Let a function that chooses inputs choose them for the program over integers."""

    @wraps(choose)
    def chosen(program: Program, *args: _P.args, **options: _P.kwargs) -> list[Case]:
        cases = choose(over_integers(program), *args, **options)
        return [replace(case, inputs=elements_of(program, case.inputs)) for case in cases]

    return chosen
