"""From statements as written to a checked program: sizes, concatenations, shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planish.core.errors import ProgramError
from planish.loops.lang.checks import check_drafts, check_program
from planish.loops.lang.draft import Draft, axes_of
from planish.loops.lang.extents import Shapes, extents
from planish.loops.lang.program import (
    ARITHMETIC,
    Access,
    Apply,
    Expr,
    Index,
    Program,
    Statement,
    TensorType,
    accesses,
)
from planish.loops.lang.scattering import is_spread
from planish.loops.lang.storage_types import read_types, rounded_last, stored_types
from planish.loops.lang.unfolding import unfold


def infer(
    drafts: Sequence[Draft],
    sizes: Mapping[str, int],
    shapes: Shapes | None = None,
    dtype: str | Mapping[str, str] = "float32",
) -> Program:
    """Make a program of statements.

    Args:
        drafts: the statements, as written.
        sizes: axis to extent; those that shapes tell may be left out.
        shapes: tensor to shape, as far as given. An input's shape is otherwise the smallest that holds
            all that is read; where that is padded before the tensor, as much is taken to be padded
            behind it.
        dtype: the element type of inputs and outputs, or tensor to type, or both as in "float16,C=float32";
            see `planish.loops.lang.storage_types`.

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
    statements, found, given = rounded_last(
        statements, types, found, {**_spread_shapes(statements, found), **given}
    )
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
    """Split a concatenation into statements that write behind each other.

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


def _spread_shapes(statements: Sequence[Statement], sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    targets = [s.target for s in statements if is_spread(s.target)]
    return {target.tensor: _shape([target], sizes) for target in targets}


def _shape(those: Sequence[Access], sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Give the smallest shape that holds all accesses; unpadded ones decide where there are any."""
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
            f"{those[0]} reads only padding in dimension {dimension}", f"Give --shape {those[0].tensor}=..."
        )
    return extent


def _without_needless_pads(statement: Statement, sizes: Mapping[str, int], shapes: Shapes) -> Statement:
    """Drop the pad where nothing outside is read, so that equal computations have equal texts."""

    def trim(expr: Expr) -> Expr:
        match expr:
            case Access(tensor=tensor, index=index) if all(
                low >= 0 and high < n
                for (low, high), n in zip((i.bounds(sizes) for i in index), shapes[tensor], strict=True)
            ):
                return replace(expr, pad=None)
            case Apply(function=function, args=args):
                return Apply(function, tuple(map(trim, args)))
            case _:
                return expr

    return replace(statement, value=trim(statement.value))
