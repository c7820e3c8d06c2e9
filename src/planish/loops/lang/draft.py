"""Statements as a user writes them, before sizes are known; text and Python notation both make these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planish.core.errors import ProgramError
from planish.loops.lang.program import COMPARISONS, FUNCTIONS, Access, Apply, Const, Expr, Index, accesses

FOLDS: Mapping[str, str] = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
"""Reductions inside a value, by name; of one argument each."""

_LATER = {"erf", *COMPARISONS}
"""Functions that came when stores had programs whose tensors may have these names: brackets tell which."""

RESERVED = {*FUNCTIONS, *FOLDS, "pad", "inf"} - _LATER
"""Names that no tensor may have."""

MOST_OPERATIONS = 200
"""In one statement; beyond it, recursion over expressions would run into Python's limit."""


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
        subscripts: of the target; one with several axes is a concatenation along that dimension.
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

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join(str(Index(s.terms, s.offset)) for s in self.subscripts)}]"


def is_fold(expr: Expr) -> bool:
    """Whether an expression is a reduction inside a value, such as `sum(x)`."""
    return isinstance(expr, Apply) and len(expr.args) == 1 < FUNCTIONS[expr.function]


def axes_of(expr: Expr) -> tuple[str, ...]:
    """List the axes that an expression names, in order."""
    return tuple(dict.fromkeys(axis for a in accesses(expr) for i in a.index for axis, _ in i.terms))


def unfold(drafts: list[Draft]) -> list[Draft]:
    """Give each reduction inside a value a statement and a tensor of its own.

    `D[m] = relu(sum(A[m,k]))` becomes `D_1[m] += A[m,k]; D[m] = relu(D_1[m])`.

    Raises:
        ProgramError: a statement is too long.
    """
    for draft in drafts:
        if sum(map(_operations, draft.parts)) > MOST_OPERATIONS:
            raise ProgramError(
                f"the statement of {draft} has more than {MOST_OPERATIONS} operations",
                "Split it by naming intermediate tensors.",
            )
    names = {d.tensor for d in drafts} | {a.tensor for d in drafts for p in d.parts for a in accesses(p)}
    return [part for draft in drafts for part in _unfolded(draft, names, {})]


def _operations(expr: Expr) -> int:
    count, waiting = 0, [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Apply):
            count += 1
            waiting += node.args
    return count


def _unfolded(
    draft: Draft, names: set[str], done: dict[tuple[Expr, tuple[str, ...]], str]
) -> Iterator[Draft]:
    """Give the statements of a draft; a fold that occurs twice over the same axes gets one statement."""
    first = draft.parts[0]
    if draft.reduce is None and len(draft.parts) == 1 and isinstance(first, Apply) and is_fold(first):
        yield from _unfolded(Draft(draft.tensor, draft.subscripts, first.function, first.args), names, done)
        return
    parts: list[Expr] = []
    for part in draft.parts:
        folds = _folds(part)
        outside = (*draft.axes, *axes_of(_replaced(part, dict.fromkeys(folds, Const(0.0)))))
        results: dict[Expr, Expr] = {}
        for fold in folds:
            kept = tuple(a for a in dict.fromkeys(outside) if a in axes_of(fold))
            plain = tuple(Linear(((a, 1),)) for a in kept)
            if (fold, kept) not in done:
                done[fold, kept] = fresh(draft.tensor, names)
                part_of = Draft(done[fold, kept], plain, fold.function, fold.args)
                yield from _unfolded(part_of, names, done)
            results[fold] = Access(done[fold, kept], tuple(s.index() for s in plain))
        parts.append(_replaced(part, results))
    yield Draft(draft.tensor, draft.subscripts, draft.reduce, tuple(parts))


def fresh(stem: str, names: set[str]) -> str:
    """Make a name for a tensor, and add it to the names in use."""
    name = next(f"{stem}_{i}" for i in range(1, len(names) + 2) if f"{stem}_{i}" not in names)
    names.add(name)
    return name


def _folds(expr: Expr) -> list[Apply]:
    """List the outermost folds, each once."""
    if not isinstance(expr, Apply):
        return []
    if is_fold(expr):
        return [expr]
    return list(dict.fromkeys(fold for arg in expr.args for fold in _folds(arg)))


def _replaced(expr: Expr, new: Mapping[Expr, Expr]) -> Expr:
    if expr in new:
        return new[expr]
    if isinstance(expr, Apply):
        return Apply(expr.function, tuple(_replaced(arg, new) for arg in expr.args))
    return expr
