"""Elements of several numbers as these numbers: what the reference, inputs and NumPy compute with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import numpy as np

from planish.levels.loops.lang.draft import fresh
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import (
    BFLOAT16X2,
    INT8X4,
    PACKED,
    QINT8,
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

NUMBERS: Mapping[str, str] = {UINT8X4: QUINT8, INT8X4: QINT8, BFLOAT16X2: "bfloat16"}
"""Types of elements of several numbers, and of these numbers."""


def over_numbers(program: Program) -> Program:
    """Return the program over single numbers, with one more axis; one without such elements as it is."""
    packed = {name: kind.dtype for name, kind in program.types if kind.dtype in PACKED}
    if not packed:
        return program
    axes = {count: fresh(f"q{count}", set(program.size)) for count in {PACKED[d] for d in packed.values()}}

    def widened(expr: Expr) -> Expr | None:
        if isinstance(expr, Access) and expr.tensor in packed:
            axis = axes[PACKED[packed[expr.tensor]]]
            return replace(expr, index=(*expr.index, Index(((axis, 1),))))
        return None

    def kind(name: str, given: TensorType) -> TensorType:
        if name not in packed:
            return given
        return TensorType((*given.shape, PACKED[given.dtype]), NUMBERS[given.dtype])

    return replace(
        program,
        statements=tuple(replace(s, value=rewritten(s.value, widened)) for s in program.statements),
        sizes=tuple(sorted({**program.size, **{axis: count for count, axis in axes.items()}}.items())),
        types=tuple((name, kind(name, given)) for name, given in program.types),
    )


def numbers_of(program: Program, arrays: Arrays) -> dict[str, Array]:
    """View elements of several numbers as numbers, along one dimension more."""
    return {name: _view(program, name, array) for name, array in arrays.items()}


def _view(program: Program, name: str, array: Array) -> Array:
    dtype = program.type[name].dtype
    if dtype not in PACKED:
        return array
    return array.view(numpy_type(NUMBERS[dtype])).reshape(*array.shape, PACKED[dtype])


def elements_of(program: Program, arrays: Arrays) -> dict[str, Array]:
    """Make the arrays of a program of those of `over_numbers`."""
    found = dict(arrays)
    for name, array in arrays.items():
        if (kind := program.type[name]).dtype in PACKED:
            found[name] = np.ascontiguousarray(array).view(numpy_type(kind.dtype)).reshape(kind.shape)
    return found


def chosen_over_numbers(
    choose: Callable[Concatenate[Program, _P], list[Case]],
) -> Callable[Concatenate[Program, _P], list[Case]]:
    """Let a function that chooses inputs choose them for the program over single numbers."""

    @wraps(choose)
    def chosen(program: Program, *args: _P.args, **options: _P.kwargs) -> list[Case]:
        cases = choose(over_numbers(program), *args, **options)
        return [replace(case, inputs=elements_of(program, case.inputs)) for case in cases]

    return chosen
