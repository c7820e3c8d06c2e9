"""Draft statements, as a user writes them before sizes are known: extents of axes, gathers and scatters.

The text and the Python notation both make drafts. A comparison alone is 1 or 0, and so `a < b` is
`where(a < b, 1, 0)`; a choice by any other value takes the first where that is not 0.

A gather, `E[I[t], d]`, is subscripted by the elements of another tensor. As an expression it is `gather0` of
two accesses: the table's, which has 0 for the subscript that is gathered (here that of dimension 0), and the
index tensor's. An index is truncated to an integer and clamped to the dimension, so that no element
outside the table is ever read. An input that is nothing but indices may be of integers where all else
is not.

A scatter, `O[2*t + i] += X[t] * W[i]` or `O[2*i] = X[i]`, may reach one element by several terms, and others
by none. Such a target is filled first, with what its reduction starts from, or 0 where it is assigned; what
reaches an element is then reduced into it. So elements that nothing reaches are 0 after `=` and `+=`, 1 after
`*=`, -inf after `max=` and inf after `min=` (the least and the greatest integer).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from planish.core.errors import ProgramError, did_you_mean
from planish.levels.loops.lang.program import (
    COMPARISONS,
    FUNCTIONS,
    GATHER,
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Index,
    Program,
    Statement,
    accesses,
    parts,
    rewritten,
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
        """Return the sorted form; raises ProgramError where a coefficient is negative."""
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
    read is padded, the same padding is taken to be after the tensor as before it.

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
    if missing := [axis for axis in axes if axis not in found]:
        raise _unsized(missing, drafts)
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
    """Return where a target's subscript ends: the axes of parts lie one after the other."""
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


def _unsized(missing: Sequence[str], drafts: Sequence[Draft]) -> ProgramError:
    named = (a.tensor for d in drafts for a in uses(d) if set(missing).intersection(axes_of(a)))
    tensors = ", ".join(dict.fromkeys(tensor for tensor in named if tensor != POSITIONS))
    axes = ", ".join(f"'{axis}'" for axis in missing)
    sizes = ",".join(f"{axis}=..." for axis in missing)
    if len(missing) == 1:
        return ProgramError(
            f"axis {axes} of {tensors} has no size", f'Add size="{sizes}", or a shape= that has it.'
        )
    return ProgramError(
        f"axes {axes} of {tensors} have no size", f'Add size="{sizes}", or shapes that have them.'
    )


# Gathers


def gather(tensor: str, subscripts: Sequence[Index | Access]) -> Access | Apply:
    """Read a tensor by subscripts of which one at most is an access.

    Raises:
        ProgramError: several are.
    """
    found = [(d, s) for d, s in enumerate(subscripts) if isinstance(s, Access)]
    index = tuple(Index(()) if isinstance(s, Access) else s for s in subscripts)
    if not found:
        return Access(tensor, index)
    if len(found) > 1:
        names = " and ".join(s.tensor for _, s in found)
        raise ProgramError(
            f"{tensor} is subscripted by {len(found)} tensors, {names}", "One subscript may be a tensor."
        )
    dimension, by = found[0]
    return Apply(f"{GATHER}{dimension}", (Access(tensor, index), by))


def is_gather(expr: Expr) -> bool:
    """Return whether an expression reads a table by the elements of another tensor."""
    return isinstance(expr, Apply) and expr.function.startswith(GATHER)


def parts_of(expr: Expr) -> tuple[Access, int, Access]:
    """Return the table's access, the dimension that is gathered, and the index tensor's access."""
    assert isinstance(expr, Apply)
    table, by = expr.args
    assert isinstance(table, Access)
    assert isinstance(by, Access)
    return table, int(expr.function.removeprefix(GATHER)), by


def gathers(expr: Expr) -> Iterator[Expr]:
    """List the gathers of an expression."""
    return (part for part in parts(expr) if is_gather(part))


def tables(expr: Expr) -> frozenset[Access]:
    """Return the accesses of tables in an expression."""
    return frozenset(parts_of(g)[0] for g in gathers(expr))


def index_tensors(statements: Sequence[Statement]) -> frozenset[str]:
    """Return the names of the tensors that subscript others."""
    return frozenset(parts_of(g)[2].tensor for s in statements for g in gathers(s.value))


def value_tensors(statements: Sequence[Statement]) -> frozenset[str]:
    """Return the names of the tensors that are read as anything else."""
    return frozenset(
        access.tensor
        for s in statements
        for access in accesses(
            rewritten(s.value, lambda part: parts_of(part)[0] if is_gather(part) else None)
        )
    )


def index_ranges(program: Program) -> dict[str, int]:
    """Return each tensor whose elements are indices the longest dimension that they subscript."""
    found: dict[str, int] = {}
    for table, dimension, by in (parts_of(g) for s in program.statements for g in gathers(s.value)):
        found[by.tensor] = max(found.get(by.tensor, 1), program.type[table.tensor].shape[dimension])
    return found


def check_gathers(drafts: Sequence[Draft], shapes: Shapes) -> None:
    """Refuse tables that are not inputs, or whose shape is not known; raises ProgramError."""
    written = {d.tensor for d in drafts}
    for each in (g for d in drafts for p in d.parts for g in gathers(p)):
        table, _, by = parts_of(each)
        if table.tensor in written:
            raise ProgramError(
                f"{each} subscripts {table.tensor} by a tensor, but the program writes {table.tensor}",
                "Only an input can be subscripted so.",
            )
        if table.tensor not in shapes:
            raise ProgramError(
                f"the shape of {table.tensor}, which {by} subscripts, is not known",
                f'Give shape="{table.tensor}=...".',
            )


# Scatters

Sizes = Mapping[str, int]


def is_spread(target: Access) -> bool:
    """Return whether some subscript of a target is more than an axis and an offset."""
    return any([c for _, c in index.terms] != [1] for index in target.index)


def is_whole(index: Index, size: Sizes, extent: int) -> bool:
    """Return whether a subscript is an axis that walks all of a dimension."""
    return [c for _, c in index.terms] == [1] and index.offset == 0 and size[index.terms[0][0]] == extent


def is_injective(index: Index, size: Sizes) -> bool:
    """Return whether a subscript reaches each element once at most; no where that is not plain to see."""
    reach = 0
    for axis, coefficient in _by_coefficient(index, size):
        if coefficient <= reach:
            return False
        reach += coefficient * (size[axis] - 1)
    return True


def _by_coefficient(index: Index, size: Sizes) -> list[tuple[str, int]]:
    """List the terms of axes of several elements, the shortest way first."""
    return sorted([term for term in index.terms if size[term[0]] > 1], key=lambda term: term[1])


def _covers(index: Index, size: Sizes, extent: int) -> bool:
    """Return whether a subscript reaches each element of a dimension exactly once."""
    reached = 1
    for axis, coefficient in _by_coefficient(index, size):
        if coefficient != reached:
            return False
        reached *= size[axis]
    return index.offset == 0 and reached == extent


def scattered(target: Access, size: Sizes, shape: Sequence[int]) -> tuple[int, ...]:
    """List the dimensions of a target of which elements are reached several times, or never.

    Interleaved halves, `O[2*i + r]` with two r, are no such thing.

    Args:
        target: of a statement.
        size: axis to extent.
        shape: the tensor's.
    """
    if not is_spread(target):
        return ()
    return tuple(
        d for d, (i, n) in enumerate(zip(target.index, shape, strict=True)) if not _covers(i, size, n)
    )


def collisions(target: Access, size: Sizes) -> int:
    """Bound how many combinations of its axes reach one element of a target."""
    return prod(_most(index, size) for index in target.index)


def _most(index: Index, size: Sizes) -> int:
    # All axes but one may be chosen freely; what the last one is follows then.
    extents = [size[axis] for axis, _ in index.terms]
    return 1 if is_injective(index, size) else prod(extents) // max(extents)


def check_spread(statement: Statement, program: Program) -> None:
    """Refuse that several statements write a spread target, or that one assigns it twice.

    Raises:
        ProgramError: says which target.
    """
    target = statement.target
    if not is_spread(target):
        return
    if sum(s.target.tensor == target.tensor for s in program.statements) > 1:
        raise ProgramError(
            f"{target} is not all that writes {target.tensor}, but fills it first",
            "Give each its own tensor, and add them up.",
        )
    for index in target.index:
        if statement.reduce is None and not is_injective(index, program.size):
            raise ProgramError(
                f"several values go into one element of {target}, along '{index}'",
                "Write += (or max=, min=, *=) to say what becomes of them.",
            )


def passes(target: Access, size: Sizes) -> Iterator[tuple[tuple[Index, ...], dict[str, int]]]:
    """Divide a statement into passes of which each reaches no element twice.

    Args:
        target: of the statement.
        size: axis to extent.

    Returns:
        For each pass the target's subscripts, of one axis each, and the positions of the others.
    """
    yield from _passes(target.index, size, {})


def _passes(
    index: tuple[Index, ...], size: Sizes, positions: dict[str, int]
) -> Iterator[tuple[tuple[Index, ...], dict[str, int]]]:
    d = next((d for d, i in enumerate(index) if len(i.terms) > 1), None)
    if d is None:
        yield index, positions
        return
    terms, offset = index[d].terms, index[d].offset
    axis, coefficient = min(terms, key=lambda term: size[term[0]])
    rest = tuple(term for term in terms if term[0] != axis)
    for i in range(size[axis]):
        moved = Index(rest, offset + coefficient * i)
        yield from _passes((*index[:d], moved, *index[d + 1 :]), size, {**positions, axis: i})
