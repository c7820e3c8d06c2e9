"""Inference: from drafts to a checked program with sizes, concatenations and shapes.

Reductions inside values become statements of their own. `argmax` and `argmin` become what the language has:
the extreme first, then the least index that has it::

    O[i] = argmax(X[i,k])      O_1[i] max= X[i,k]
                               O[i] min= where(X[i,k] == O_1[i], k, where(X[i,k] == X[i,k], inf, k))

As in NumPy, the first of equals is taken, and NaN comes before all others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

from planish.core.errors import ProgramError, did_you_mean
from planish.levels.loops.lang.draft import (
    ARG_REDUCTIONS,
    FOLDS,
    RESERVED,
    Draft,
    Linear,
    Shapes,
    axes_of,
    check_gathers,
    check_spread,
    extents,
    fresh,
    index_ranges,
    is_fold,
    is_spread,
    position,
    uses,
)
from planish.levels.loops.lang.element_types import (
    INTEGER,
    check_integers,
    check_numbers,
    check_packed,
    read_types,
    rounded_last,
    stored_types,
)
from planish.levels.loops.lang.program import (
    ARITHMETIC,
    DTYPES,
    FUNCTIONS,
    INDICES,
    POSITIONS,
    Access,
    Apply,
    Const,
    Expr,
    Index,
    Program,
    Statement,
    TensorType,
    accesses,
    count_operations,
    number_text,
    rewritten,
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_drafts(drafts: Sequence[Draft], shapes: Shapes) -> None:
    """Check all that needs no sizes; raises ProgramError."""
    if not drafts:
        raise ProgramError("the program has no statement", "Write one, such as C[m,n] += A[m,k] * B[k,n].")
    _check_names(drafts)
    for draft in drafts:
        _check_target(draft)
        _check_parts(draft)
        _check_reduction(draft)
    _check_ranks(drafts, shapes)
    _check_order(drafts)
    check_gathers(drafts, shapes)


def _check_names(drafts: Sequence[Draft]) -> None:
    """Refuse names that the text notation could not read back."""
    used = [a for d in drafts for a in uses(d)]
    for tensor in (*(a.tensor for a in used if a.tensor != POSITIONS), *(d.tensor for d in drafts)):
        if tensor in RESERVED or not _NAME.fullmatch(tensor):
            raise ProgramError(f"'{tensor}' cannot be the name of a tensor", "Use letters, digits and _.")
    for axis in (axis for a in used for i in a.index for axis, _ in i.terms):
        if not _NAME.fullmatch(axis):
            raise ProgramError(f"'{axis}' cannot be the name of an axis", "Use letters, digits and _.")


def _check_target(draft: Draft) -> None:
    for subscript in draft.subscripts:
        if not subscript.index().terms or any(c == 0 for _, c in subscript.terms):
            raise ProgramError(
                f"the target {draft} must have an axis in each subscript",
                "A target may scale axes, add them up, and add an offset (2*t + i + 8).",
            )
        if subscript.offset < 0:
            raise ProgramError(
                f"the target {draft} begins before its tensor",
                "Write all of a larger tensor, and read the part that counts: O[t] = P[t + 1].",
            )
    for axis in draft.axes:
        if draft.axes.count(axis) > 1:
            raise ProgramError(f"axis '{axis}' stands twice in the target {draft}", "Use two axes.")


def _check_parts(draft: Draft) -> None:
    if len(draft.parts) == 1:
        return
    joined = [s for s in draft.subscripts if len(s.terms) > 1]
    n = len(joined[0].terms) if joined else 1
    if any(c != 1 for s in draft.subscripts for _, c in s.terms):
        raise ProgramError(
            f"the target {draft} is both joined and scaled", "Join the parts in a tensor of their own first."
        )
    if len(joined) > 1 or n != len(draft.parts):
        raise ProgramError(
            f"the target {draft} takes {n} parts, not {len(draft.parts)}"
            if len(joined) < 2
            else f"the target {draft} is joined along two dimensions",
            "A concatenation adds one axis for each part: O[r, a + b] = A[r,a] | B[r,b].",
        )
    if not joined:
        return
    axes = [axis for axis, _ in joined[0].terms]
    for part, own in zip(draft.parts, axes, strict=True):
        for axis in axes_of(part):
            if axis in axes and axis != own:
                raise ProgramError(
                    f"part '{part}' of {draft} has axis '{axis}', but its own is '{own}'",
                    "Write the axes in the order of the parts.",
                )


def _check_reduction(draft: Draft) -> None:
    reduced = [axis for part in draft.parts for axis in axes_of(part) if axis not in draft.axes]
    if reduced and draft.reduce is None:
        raise ProgramError(
            f"axis '{reduced[0]}' is not in the target {draft}",
            "Write += (or max=, min=, *=) to reduce it, or add it to the target.",
        )
    if draft.reduce is not None and not reduced and not draft.spread:
        raise ProgramError(
            f"{draft} reduces nothing: every axis is in the target",
            "Write =; a reduction starts anew and does not add to the old content.",
        )


def _check_ranks(drafts: Sequence[Draft], shapes: Shapes) -> None:
    first: dict[str, Access] = {}
    for access in (a for d in drafts for a in uses(d)):
        known = first.setdefault(access.tensor, access)
        if len(known.index) != len(access.index):
            raise ProgramError(
                f"{known} and {access} differ in rank: {len(known.index)} and {len(access.index)}",
                f"Write as many subscripts each time, or rename one {access.tensor}.",
            )
    for tensor, shape in shapes.items():
        if tensor not in first:
            raise ProgramError(
                f"a shape is given for '{tensor}', which no statement has", did_you_mean(tensor, first)
            )
        if len(shape) != len(first[tensor].index):
            raise ProgramError(
                f"{first[tensor]} and its shape {list(shape)} differ in rank: "
                f"{len(first[tensor].index)} and {len(shape)}",
                "Give one extent for each subscript.",
            )
        if any(n < 1 for n in shape):
            raise ProgramError(f"tensor {tensor} has shape {list(shape)}", "Extents are at least 1.")


def _check_order(drafts: Sequence[Draft]) -> None:
    last = {d.tensor: i for i, d in enumerate(drafts)}
    for i, draft in enumerate(drafts):
        for access in (a for part in draft.parts for a in accesses(part)):
            if access.tensor == draft.tensor:
                raise ProgramError(
                    f"{draft} reads its own target", f"Give the result another name than {draft.tensor}."
                )
            if last.get(access.tensor, -1) > i:
                raise ProgramError(
                    f"{access} is read before {access.tensor} is written",
                    "Move the statement that writes it up.",
                )


def check_program(program: Program, given: Shapes) -> None:
    """Check all that needs sizes; raises ProgramError."""
    for tensor in program.inputs:
        if tensor in given:
            _check_integer_indices(tensor, program)
    for statement in program.statements:
        for access in accesses(statement.value):
            _check_range(access, program)
    for statement in program.statements:
        check_spread(statement, program)
    for tensor in program.written:
        _check_writes(tensor, program)
    _check_positions(program)
    if program.arithmetic == INTEGER:
        check_integers(program)
    else:
        check_numbers(program)
        check_packed(program)
    _check_memory(program)


def _check_positions(program: Program) -> None:
    """Refuse axes whose elements the arithmetic cannot count."""
    # Up to which every integer is one of the type.
    most = {"float32": 1 << 24, "float64": 1 << 53, INTEGER: 1 << 31}[program.arithmetic]
    found = (
        {"an axis that stands in a value": program.type[POSITIONS].size} if POSITIONS in program.type else {}
    )
    # Integers count further than memories reach.
    counted = {by: n for by, n in index_ranges(program).items() if program.type[by].dtype not in INDICES}
    found |= {f"a dimension that {by} subscripts": n for by, n in counted.items()}
    for what, n in found.items():
        if n - 1 > most:
            raise ProgramError(
                f"{what} has {n:,} elements, but {program.arithmetic} counts to {most:,}",
                'Give smaller sizes, or dtype="float64".',
            )


def _check_range(access: Access, program: Program) -> None:
    for d, (index, n) in enumerate(zip(access.index, program.type[access.tensor].shape, strict=True)):
        low, high = index.bounds(program.size)
        if access.pad is None and (low < 0 or high >= n):
            larger = f', or give shape="{access.tensor}=..."' if access.tensor in program.inputs else ""
            raise ProgramError(
                f"{access} reads {low}..{high} of dimension {d}, which is 0..{n - 1}",
                f"Write pad({access}, 0){larger}, or smaller sizes.",
            )


def _check_integer_indices(tensor: str, program: Program) -> None:
    """Refuse axes that alone walk a dimension, and not all of it: most likely a slip."""
    those = [a for s in program.statements for a in accesses(s.value) if a.tensor == tensor]
    for d, n in enumerate(program.type[tensor].shape):
        used = {a.index[d] for a in those}
        # With a window or an offset, to read a part is most likely meant.
        if all(i.offset == 0 and [c for _, c in i.terms] == [1] for i in used):
            axis = max((i.terms[0][0] for i in used), key=lambda axis: program.size[axis])
            if program.size[axis] != n:
                raise ProgramError(
                    f"axis '{axis}' has size {program.size[axis]}, but dimension {d} of {tensor} has {n}",
                    "Make them equal.",
                )


def _check_writes(tensor: str, program: Program) -> None:
    targets = [s.target for s in program.statements if s.target.tensor == tensor]
    boxes = [tuple(i.bounds(program.size) for i in t.index) for t in targets]
    for (a, first), (b, second) in combinations(zip(boxes, targets, strict=True), 2):
        # Boxes overlap only where they do so in every dimension.
        if all(low <= high2 and low2 <= high for (low, high), (low2, high2) in zip(a, b, strict=True)):
            raise ProgramError(
                f"{second} writes what {first} has written", "Give the second result a name of its own."
            )
    shape = program.type[tensor].shape
    for box in boxes:
        for d, (_, high) in enumerate(box):
            if high >= shape[d]:
                raise ProgramError(
                    f"{tensor} is written up to {high} in dimension {d}, which is 0..{shape[d] - 1}",
                    f'Give a larger shape="{tensor}=...", or none.',
                )
    if is_spread(targets[0]):  # it is filled first
        return
    # No two overlap, so their sizes add up to the whole only where nothing is left out.
    if sum(prod(high - low + 1 for low, high in box) for box in boxes) != prod(shape):
        raise ProgramError(
            f"{tensor} has shape {list(shape)}, but parts of it are never written",
            "Write them, or give no shape= and leave no gaps.",
        )


def _check_memory(program: Program) -> None:
    need = sum(t.size * DTYPES[t.dtype] for _, t in program.types)
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > have:
        largest = max(program.types, key=lambda item: item[1].size)
        raise ProgramError(
            f"the tensors need {_gib(need)}, but this machine has {_gib(have)}: "
            f"{largest[0]}{list(largest[1].shape)} is the largest",
            "Give smaller sizes.",
        )


def _gib(n: int) -> str:
    return f"{number_text(round(n / 2**30, 1))} GiB"


# argmax and argmin


def _unfold_arg_reduction(draft: Draft, own: Sequence[str], names: set[str]) -> Iterator[Draft]:
    """Return the statements of one that is reduced by `argmax` or `argmin`.

    Args:
        draft: the statement, of one part.
        own: the axes of its value, but for those that reductions inside take away.
        names: of all tensors; grows.
    """
    function, value = str(draft.reduce), draft.parts[0]
    along = [axis for axis in own if axis not in draft.axes]
    if len(along) != 1:
        axes = ", ".join(f"'{axis}'" for axis in along)
        raise ProgramError(
            f"{function} for {draft} looks along {len(along)} axes{': ' if axes else ''}{axes}",
            "It looks along one: the axis of its argument that the target does not have.",
        )
    kept = [axis for axis in own if axis in draft.axes]
    if not isinstance(value, Access):
        # Computed twice, a value could be rounded in two ways, and be equal to itself nowhere.
        inner = Draft(fresh(draft.tensor, names), _plain([*kept, *along]), None, (value,))
        yield inner
        value = _read(inner)
    best = Draft(fresh(draft.tensor, names), _plain(kept), ARG_REDUCTIONS[function], (value,))
    yield best
    here = position(along[0])
    # Equal to itself is all but what is not a number.
    no_number = Apply("==", (value, value, Const(float("inf")), here))
    first = Apply("==", (value, _read(best), here, no_number))
    yield Draft(draft.tensor, draft.subscripts, "min", (first,))


def _plain(axes: Sequence[str]) -> tuple[Linear, ...]:
    return tuple(Linear(((axis, 1),)) for axis in axes)


def _read(draft: Draft) -> Expr:
    return Access(draft.tensor, tuple(s.index() for s in draft.subscripts))


# Reductions inside values

MOST_OPERATIONS = 200
"""In one statement; beyond it, recursion over expressions would run into Python's limit."""


def unfold(drafts: list[Draft]) -> list[Draft]:
    """Replace each reduction inside a value by a statement and a tensor of its own.

    `D[m] = relu(sum(A[m,k]))` becomes `D_1[m] += A[m,k]; D[m] = relu(D_1[m])`.

    Raises:
        ProgramError: a statement is too long.
    """
    for draft in drafts:
        if sum(map(count_operations, draft.parts)) > MOST_OPERATIONS:
            raise ProgramError(
                f"the statement of {draft} has more than {MOST_OPERATIONS} operations",
                "Split it by naming intermediate tensors.",
            )
    names = {d.tensor for d in drafts} | {a.tensor for d in drafts for p in d.parts for a in accesses(p)}
    return [part for draft in drafts for part in _unfolded(draft, names, {})]


def _unfolded(
    draft: Draft, names: set[str], done: dict[tuple[Expr, tuple[str, ...]], str]
) -> Iterator[Draft]:
    """Return the statements of a draft; a fold that occurs twice over the same axes gets one statement."""
    first = draft.parts[0]
    if draft.reduce in ARG_REDUCTIONS:
        for each in _unfold_arg_reduction(draft, _own_axes(first), names):
            yield from _unfolded(each, names, done)
        return
    # What a spread target is filled with follows from its own operator: it is assigned a fold's result.
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
        parts.append(rewritten(part, results.get))
    yield Draft(draft.tensor, draft.subscripts, draft.reduce, tuple(parts))


def _check_reduces(fold: Apply, draft: Draft, outside: Sequence[str]) -> None:
    """Refuse a reduction inside a value that has no axis to reduce."""
    if fold.function in ARG_REDUCTIONS or not set(axes_of(fold)) <= set(outside):
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
    return axes_of(rewritten(expr, lambda part: Const(0.0) if is_fold(part) else None))


def _folds(expr: Expr) -> list[Apply]:
    """List the outermost folds, each once."""
    if not isinstance(expr, Apply):
        return []
    if is_fold(expr):
        return [expr]
    return list(dict.fromkeys(fold for arg in expr.args for fold in _folds(arg)))


# Inference


def infer(
    drafts: Sequence[Draft],
    sizes: Mapping[str, int],
    shapes: Shapes | None = None,
    dtype: str | Mapping[str, str] = "float32",
) -> Program:
    """Make a program of statements.

    Args:
        drafts: the statements, as written.
        sizes: axis to extent; those that shapes determine may be left out.
        shapes: tensor to shape, as far as given. An input's shape is otherwise the smallest that holds
            all that is read; where that is padded before the tensor, as much is taken to be padded
            after it.
        dtype: the element type of inputs and outputs, or tensor to type, or both as in "float16,C=float32";
            see `planish.levels.loops.lang.element_types`.

    Raises:
        ProgramError: the statements make no program; the message names the tensor and the axis.
    """
    wanted = read_types(dtype) if isinstance(dtype, str) else dtype
    given = dict(shapes or {})
    drafts = unfold(list(drafts))
    check_drafts(drafts, given)
    found = extents(drafts, sizes, given)
    statements = [s for draft in drafts for s in _statements(draft, found)]
    types = stored_types(statements, wanted)
    arithmetic = ARITHMETIC[next(iter(types.values()))]
    spread = {s.target.tensor: _shape([s.target], found) for s in statements if is_spread(s.target)}
    statements, found, given = rounded_last(statements, types, found, {**spread, **given})
    tensors = _shapes(statements, found, given)
    statements = tuple(_without_needless_pads(s, found, tensors) for s in statements)
    program = Program(
        statements,
        tuple(sorted(found.items())),
        tuple((t, TensorType(shape, types.get(t, arithmetic))) for t, shape in tensors.items()),
    )
    check_program(program, given)
    return program


def _statements(draft: Draft, sizes: Mapping[str, int]) -> list[Statement]:
    """Split a concatenation into statements that write after each other.

    `O[r, a + b] = A[r, a] | B[r, b]` becomes `O[r, a] = A[r, a]; O[r, b + 8] = B[r, b]` where a has 8
    elements (thesis 3.2). A part that reduces nothing is assigned.
    """
    joined = [d for d, s in enumerate(draft.subscripts) if len(s.terms) > 1]
    if not joined or len(draft.parts) == 1:
        target = Access(draft.tensor, tuple(s.index() for s in draft.subscripts))
        return [Statement(target, draft.reduce, draft.parts[0])]
    dimension = joined[0]
    subscript = draft.subscripts[dimension]
    result: list[Statement] = []
    offset = subscript.offset
    for (axis, _), part in zip(subscript.terms, draft.parts, strict=True):
        index = [s.index() for s in draft.subscripts]
        index[dimension] = Index(((axis, 1),), offset)
        reduce = draft.reduce if set(axes_of(part)) - set(draft.axes) else None
        result.append(Statement(Access(draft.tensor, tuple(index)), reduce, part))
        offset += sizes[axis]
    return result


def _shapes(
    statements: Sequence[Statement], sizes: Mapping[str, int], given: Shapes
) -> dict[str, tuple[int, ...]]:
    written = dict.fromkeys(s.target.tensor for s in statements)
    read = dict.fromkeys(a.tensor for s in statements for a in accesses(s.value))
    shapes: dict[str, tuple[int, ...]] = {}
    for tensor in (*(t for t in read if t not in written), *written):
        if tensor in written:
            those = [s.target for s in statements if s.target.tensor == tensor]
        else:
            those = [a for s in statements for a in accesses(s.value) if a.tensor == tensor]
        shapes[tensor] = given.get(tensor) or _shape(those, sizes)
    return shapes


def _shape(those: Sequence[Access], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Return the smallest shape that holds all accesses; unpadded ones decide where there are any."""
    return tuple(_extent(those, d, sizes) for d in range(len(those[0].index)))


def _extent(those: Sequence[Access], dimension: int, sizes: Mapping[str, int]) -> int:
    deciding = [a for a in those if a.pad is None] or those
    bounds = [a.index[dimension].bounds(sizes) for a in deciding]
    extent = max(
        # A padded window goes beyond the end by as much as before the beginning.
        high + 1 + (min(low, 0) if a.pad is not None else 0)
        for a, (low, high) in zip(deciding, bounds, strict=True)
    )
    if extent < 1:
        raise ProgramError(
            f"{those[0]} reads only padding in dimension {dimension}", f'Give shape="{those[0].tensor}=...".'
        )
    return extent


def _without_needless_pads(statement: Statement, sizes: Mapping[str, int], shapes: Shapes) -> Statement:
    """Drop the pad where nothing outside is read, so that equal computations have equal texts."""

    def trimmed(expr: Expr) -> Expr | None:
        if not isinstance(expr, Access) or expr.pad is None:
            return None
        bounds = zip((i.bounds(sizes) for i in expr.index), shapes[expr.tensor], strict=True)
        return replace(expr, pad=None) if all(low >= 0 and high < n for (low, high), n in bounds) else None

    return replace(statement, value=rewritten(statement.value, trimmed))
