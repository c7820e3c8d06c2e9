"""Statements as a user writes them, before sizes are known; text and Python notation both make these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planish.core.errors import ProgramError
from planish.loops.lang.program import (
    COMPARISONS,
    FUNCTIONS,
    POSITIONS,
    Access,
    Apply,
    Expr,
    Index,
    accesses,
)

PLACES: Mapping[str, str] = {"argmax": "max", "argmin": "min"}
"""Functions that tell where a reduction's result is, first of all places, to the reduction."""

FOLDS: Mapping[str, str] = {"sum": "add", "prod": "mul", "max": "max", "min": "min", **{p: p for p in PLACES}}
"""Reductions inside a value, by name; of one argument each."""

_LATER = {"erf", *COMPARISONS, *PLACES}
"""Functions that came when stores had programs whose tensors may have these names: brackets tell which."""

RESERVED = {*FUNCTIONS, *FOLDS, "pad", "inf"} - _LATER
"""Names that no tensor may have."""


@dataclass(frozen=True)
class Linear:
    """A subscript as written: the axes in the order of writing, with their coefficients, plus an offset."""

    terms: tuple[tuple[str, int], ...] = ()
    offset: int = 0

    def plus(self, other: Linear) -> Linear:
        """Give the sum; an axis that both have keeps its first place."""
        total = dict(self.terms)
        for axis, coefficient in other.terms:
            total[axis] = total.get(axis, 0) + coefficient
        return Linear(tuple(total.items()), self.offset + other.offset)

    def times(self, factor: int) -> Linear:
        """Give the multiple."""
        return Linear(tuple((axis, c * factor) for axis, c in self.terms), self.offset * factor)

    def index(self) -> Index:
        """Give the sorted form.

        Raises:
            ProgramError: a coefficient is negative.
        """
        for axis, coefficient in self.terms:
            if coefficient < 0:
                raise ProgramError(
                    f"axis '{axis}' has the negative coefficient {coefficient} in a subscript",
                    "Axes are walked upwards only: reverse the tensor beforehand.",
                )
        return Index(tuple(sorted((a, c) for a, c in self.terms if c)), self.offset)


@dataclass(frozen=True)
class Draft:
    """A statement as written.

    Args:
        tensor: what is written.
        subscripts: of the target; one with several axes is a concatenation along that dimension where there
            are several parts, and else a sum.
        reduce: one of `IDENTITY`, or None.
        parts: the value; several where `|` concatenates. An `Apply` of a reduction to one argument
            (`sum(x)` is `Apply("add", (x,))`) reduces the axes that are named nowhere else.
    """

    tensor: str
    subscripts: tuple[Linear, ...]
    reduce: str | None
    parts: tuple[Expr, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the target, outermost first."""
        return tuple(axis for s in self.subscripts for axis, _ in s.terms)

    @property
    def spread(self) -> bool:
        """Whether some subscript of the target is more than an axis and an offset, and joins no parts."""
        return len(self.parts) == 1 and any([c for _, c in s.terms] != [1] for s in self.subscripts)

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(str(Index(s.terms, s.offset)) for s in self.subscripts)}]"


def position(axis: str) -> Access:
    """Give the number of an axis's element as a value."""
    return Access(POSITIONS, (Index(((axis, 1),)),))


def is_fold(expr: Expr) -> bool:
    """Whether an expression is a reduction inside a value, such as `sum(x)`."""
    if not isinstance(expr, Apply):
        return False
    return expr.function in PLACES or len(expr.args) == 1 < FUNCTIONS[expr.function]


def axes_of(expr: Expr) -> tuple[str, ...]:
    """List the axes that an expression names, in order."""
    return tuple(dict.fromkeys(axis for a in accesses(expr) for i in a.index for axis, _ in i.terms))


def fresh(stem: str, names: set[str]) -> str:
    """Make a name for a tensor, and add it to the names in use."""
    name = next(f"{stem}_{i}" for i in range(1, len(names) + 2) if f"{stem}_{i}" not in names)
    names.add(name)
    return name
