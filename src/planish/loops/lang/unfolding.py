"""Reductions inside values: each becomes a statement of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planish.core.errors import ProgramError
from planish.loops.lang.draft import FOLDS, PLACES, Draft, Linear, axes_of, fresh, is_fold
from planish.loops.lang.placing import placed
from planish.loops.lang.program import FUNCTIONS, Access, Apply, Const, Expr, accesses

MOST_OPERATIONS = 200
"""In one statement; beyond it, recursion over expressions would run into Python's limit."""


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
    if draft.reduce in PLACES:
        for each in placed(draft, _own_axes(first), names):
            yield from _unfolded(each, names, done)
        return
    # What a spread target is filled with follows from its own operator: it is assigned what a fold gives.
    alone = len(draft.parts) == 1 and not draft.spread
    if draft.reduce is None and alone and isinstance(first, Apply) and is_fold(first):
        _check_reduces(first, draft, draft.axes)
        yield from _unfolded(Draft(draft.tensor, draft.subscripts, first.function, first.args), names, done)
        return
    parts: list[Expr] = []
    for part in draft.parts:
        folds, outside = _folds(part), (*draft.axes, *_own_axes(part))
        results: dict[Expr, Expr] = {}
        for fold in folds:
            _check_reduces(fold, draft, outside)
            kept = tuple(a for a in dict.fromkeys(outside) if a in axes_of(fold))
            plain = tuple(Linear(((a, 1),)) for a in kept)
            if (fold, kept) not in done:
                done[fold, kept] = fresh(draft.tensor, names)
                part_of = Draft(done[fold, kept], plain, fold.function, fold.args)
                yield from _unfolded(part_of, names, done)
            results[fold] = Access(done[fold, kept], tuple(s.index() for s in plain))
        parts.append(_replaced(part, results))
    yield Draft(draft.tensor, draft.subscripts, draft.reduce, tuple(parts))


def _check_reduces(fold: Apply, draft: Draft, outside: Sequence[str]) -> None:
    """Refuse a reduction inside a value that has no axis to reduce."""
    if fold.function in PLACES or not set(axes_of(fold)) <= set(outside):
        return
    name = next(name for name, function in FOLDS.items() if function == fold.function)
    takes = (
        f"{name} takes 2 arguments, or 1 to reduce" if name in FUNCTIONS else f"{name} reduces its argument"
    )
    raise ProgramError(
        f"{name} of one argument reduces nothing in the statement of {draft}: all axes stand elsewhere in it",
        f"{takes} over axes that stand nowhere else, as in D[m] = {name}(A[m,k]).",
    )


def _own_axes(expr: Expr) -> tuple[str, ...]:
    """List the axes that an expression names outside of its folds."""
    return axes_of(_replaced(expr, dict.fromkeys(_folds(expr), Const(0.0))))


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
