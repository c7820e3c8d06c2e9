"""Draft statements, as a user writes them before sizes are known, and the extents of their axes.

The text and the Python notation both make drafts. A comparison alone is 1 or 0, and so `a < b` is
`where(a < b, 1, 0)`; a choice by any other value takes the first where that is not 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planish.core.errors import ProgramError, did_you_mean
from planish.levels.loops.lang.program import (
    COMPARISONS,
    FUNCTIONS,
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Index,
    accesses,
)

# Drafts

ARG_REDUCTIONS: Mapping[str, str] = {"argmax": "max", "argmin": "min"}
"""Functions that return the first index of a reduction's result, and the reduction."""

FOLDS: Mapping[str, str] = {
    "sum": "add",
    "prod": "mul",
    "max": "max",
    "min": "min",
    **{a: a for a in ARG_REDUCTIONS},
}
"""Reductions inside a value, by name; of one argument each."""

RESERVED = {*FUNCTIONS, *FOLDS, "pad", "inf"}
"""Names that no tensor may have."""


@dataclass(frozen=True)
class Linear:
    """A subscript as written: the axes in the order of writing, with their coefficients, plus an offset."""

    terms: tuple[tuple[str, int], ...] = ()
    offset: int = 0

    def plus(self, other: Linear) -> Linear:
        """Return the sum; an axis that both have keeps its first position."""
        total = dict(self.terms)
        for axis, coefficient in other.terms:
            total[axis] = total.get(axis, 0) + coefficient
        return Linear(tuple(total.items()), self.offset + other.offset)

    def times(self, factor: int) -> Linear:
        """Return the multiple."""
        return Linear(tuple((axis, c * factor) for axis, c in self.terms), self.offset * factor)

    def index(self) -> Index:
        """Return the sorted form.

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
        """Return whether a subscript of the target is more than an axis and an offset, and joins no parts."""
        return len(self.parts) == 1 and any([c for _, c in s.terms] != [1] for s in self.subscripts)

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(str(Index(s.terms, s.offset)) for s in self.subscripts)}]"


def position(axis: str) -> Access:
    """Return the number of an axis's element as a value."""
    return Access(POSITIONS, (Index(((axis, 1),)),))


def is_fold(expr: Expr) -> bool:
    """Return whether an expression is a reduction inside a value, such as `sum(x)`."""
    if not isinstance(expr, Apply):
        return False
    return expr.function in ARG_REDUCTIONS or len(expr.args) == 1 < FUNCTIONS[expr.function]


def axes_of(expr: Expr) -> tuple[str, ...]:
    """List the axes that an expression names, in order."""
    return tuple(dict.fromkeys(axis for a in accesses(expr) for i in a.index for axis, _ in i.terms))


def fresh(stem: str, names: set[str]) -> str:
    """Make a name for a tensor, and add it to the names in use."""
    name = next(f"{stem}_{i}" for i in range(1, len(names) + 2) if f"{stem}_{i}" not in names)
    names.add(name)
    return name


# Comparisons

TESTS = (*COMPARISONS, ">", ">=")
"""Comparisons as they are written; `a > b` is `b < a`."""

_ALONE = Const(1.0), Const(0.0)


def compared(test: str, left: Expr, right: Expr) -> Apply:
    """Compare two values by one of `TESTS`."""
    if test in (">", ">="):
        return Apply(test.replace(">", "<"), (right, left, *_ALONE))
    return Apply(test, (left, right, *_ALONE))


def chosen(condition: Expr, yes: Expr, no: Expr) -> Apply:
    """Choose between two values."""
    # A comparison alone is chosen by itself: to compare its 1 or 0 with 0 again would be one operation more.
    if not (
        isinstance(condition, Apply) and condition.function in COMPARISONS and condition.args[2:] == _ALONE
    ):
        condition = compared("!=", condition, Const(0.0))
    return Apply(condition.function, (*condition.args[:2], yes, no))


# Extents

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class _Use:
    """One subscript of a tensor, of a dimension of some extent; reads beyond its ends may be padded."""

    tensor: str
    dimension: int
    extent: int
    index: Index
    padded: bool

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(axis for axis, _ in self.index.terms)

    @property
    def plain(self) -> bool:
        return self.index.offset == 0 and [c for _, c in self.index.terms] == [1]


def uses(draft: Draft) -> Iterator[Access]:
    """List the accesses of a statement: the target, then what is read."""
    yield Access(draft.tensor, tuple(s.index() for s in draft.subscripts))
    for part in draft.parts:
        yield from accesses(part)


def extents(drafts: Sequence[Draft], sizes: Mapping[str, int], shapes: Shapes) -> dict[str, int]:
    """Find the extent of every axis.

    A size that is given holds. Otherwise a subscript that is one axis has the dimension's extent, and
    an axis inside a window (`y + r - 1`) gets the largest extent that stays in the tensor; where the
    read is padded, the same padding is taken to be behind the tensor as before it.

    Args:
        drafts: the statements, without reductions inside values.
        sizes: axis to extent, as far as given.
        shapes: tensor to shape, as far as given.

    Returns:
        Axis to extent, all axes of the statements.

    Raises:
        ProgramError: an axis is unknown, has no size, one that is not positive, or two.
    """
    axes = list(
        dict.fromkeys(a for d in drafts for a in (*d.axes, *(a for p in d.parts for a in axes_of(p))))
    )
    found = {axis: _checked(axis, n, axes) for axis, n in sizes.items()}
    # To a fixed point: each extent that is found may determine others, and there are only so many axes.
    while True:
        uses_now = list(_uses_of_known_shape(drafts, {**_written(drafts, found), **shapes}, shapes))
        plain = _plain(uses_now, sizes)
        # Plain axes first: a window's axis follows from the others', and not the other way round.
        new = {a: n for a, n in plain.items() if a not in found} or _window(uses_now, found)
        if not new:
            break
        found.update(new)
    for axis in axes:
        if axis not in found:
            raise _unsized(axis, drafts)
    return {axis: found[axis] for axis in axes}


def _checked(axis: str, extent: int, axes: Sequence[str]) -> int:
    if axis not in axes:
        raise ProgramError(
            f"a size is given for axis '{axis}', which no statement has", did_you_mean(axis, axes)
        )
    if extent < 1:
        raise ProgramError(f"axis '{axis}' has size {extent}", "Sizes are at least 1.")
    return extent


def _written(drafts: Sequence[Draft], found: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tensors that are written, as far as the sizes of their axes are known."""
    shapes: dict[str, tuple[int, ...]] = {}
    for tensor in {d.tensor for d in drafts}:
        parts = [d for d in drafts if d.tensor == tensor]
        if all(axis in found for d in parts for axis in d.axes):
            ends = [tuple(_end(s, d, found) for s in d.subscripts) for d in parts]
            shapes[tensor] = tuple(map(max, zip(*ends, strict=True)))
    return shapes


def _end(subscript: Linear, draft: Draft, found: Mapping[str, int]) -> int:
    """Return where a target's subscript ends: the axes of parts lie one behind the other."""
    if len(draft.parts) == 1:
        return subscript.index().bounds(found)[1] + 1
    return subscript.offset + sum(found[axis] for axis, _ in subscript.terms)


def _uses_of_known_shape(drafts: Sequence[Draft], known: Shapes, given: Shapes) -> Iterator[_Use]:
    for draft in drafts:
        for access in uses(draft):
            if access.tensor in (given if access.tensor == draft.tensor else known):
                for d, (index, extent) in enumerate(zip(access.index, known[access.tensor], strict=True)):
                    yield _Use(access.tensor, d, extent, index, access.pad is not None)


def _plain(known: Sequence[_Use], given: Mapping[str, int]) -> dict[str, int]:
    first: dict[str, _Use] = {}
    for use in known:
        if not use.plain or use.axes[0] in given:
            continue
        axis = use.axes[0]
        other = first.setdefault(axis, use)
        if other.extent != use.extent:
            raise ProgramError(
                f"axis '{axis}' is {other.extent} by dimension {other.dimension} of {other.tensor}, "
                f"but {use.extent} by dimension {use.dimension} of {use.tensor}",
                f"Make them equal, or rename the axis in {use.tensor}.",
            )
    return {axis: use.extent for axis, use in first.items()}


def _window(known: Sequence[_Use], found: Mapping[str, int]) -> dict[str, int]:
    """Solve one subscript that has a single axis without a size."""
    for use in known:
        missing = [axis for axis in use.axes if axis not in found]
        if len(missing) == 1:
            axis = missing[0]
            rest = sum(c * (found[a] - 1) for a, c in use.index.terms if a != axis) + use.index.offset
            # The largest n for which the window's last element, coefficient * (n - 1) + rest, is not beyond
            # `last`.
            last = use.extent - 1 - (min(use.index.offset, 0) if use.padded else 0)
            n = (last - rest) // dict(use.index.terms)[axis] + 1
            if n < 1:
                raise ProgramError(
                    f"no size of axis '{axis}' fits: '{use.index}' leaves dimension {use.dimension} "
                    f"of {use.tensor}, which has {use.extent} elements",
                    f"Make {use.tensor} larger, or pad it.",
                )
            return {axis: n}
    return {}


def _unsized(axis: str, drafts: Sequence[Draft]) -> ProgramError:
    named = (a.tensor for d in drafts for a in uses(d) if axis in axes_of(a))
    tensors = dict.fromkeys(tensor for tensor in named if tensor != POSITIONS)
    return ProgramError(
        f"axis '{axis}' of {', '.join(tensors)} has no size",
        f"Add --size {axis}=..., or a --shape that has it.",
    )
