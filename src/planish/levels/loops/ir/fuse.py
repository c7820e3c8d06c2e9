"""Two axes as one, in a program whose tensors have their elements in sequence along both.

The program computes the same with the same arrays: row-major `O[k, y, x]` is `O[k, y.x]` where y.x counts the
elements of whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from planish.levels.loops.lang.program import (
    Access,
    Apply,
    Expr,
    Index,
    Program,
    Statement,
    TensorType,
    accesses,
)
from planish.levels.loops.lang.subscripts import tables


def fused_name(outer: str, inner: str) -> str:
    """Return the name of the axis that two axes become."""
    return f"{outer}.{inner}"


def fusable(program: Program) -> Iterator[tuple[str, str]]:
    """List the pairs of axes, (outer, inner), that can become one; those of equal loops first."""
    pairs = dict.fromkeys(
        pair
        for statement in program.statements
        for access in _accesses(statement)
        for pair in pairwise([_alone(index, program.size) for index in access.index])
    )
    for outer, inner in pairs:
        if outer and inner and outer != inner and fused(program, outer, inner) is not None:
            yield outer, inner


def fused(program: Program, outer: str, inner: str) -> Program | None:
    """Make one axis of two; None where a tensor's elements are not in sequence along both."""
    dimensions: dict[str, int | None] = {}
    for statement in program.statements:
        # A table is looked up by values, which count along one dimension and know of no fused one.
        looked_up = {
            axis for table in tables(statement.value) for index in table.index for axis, _ in index.terms
        }
        if {outer, inner} & looked_up:
            return None
        for access in _accesses(statement):
            dimension = _dimension(access, program, outer, inner)
            # A tensor keeps one type: its accesses must agree where the axes are.
            if dimension == _APART or dimensions.setdefault(access.tensor, dimension) != dimension:
                return None
    name = fused_name(outer, inner)
    sizes = {axis: n for axis, n in program.sizes if axis not in (outer, inner)}
    sizes[name] = program.size[outer] * program.size[inner]
    types: list[tuple[str, TensorType]] = []
    for tensor, type_ in program.types:
        d, shape = dimensions.get(tensor), type_.shape
        if d is not None:
            type_ = replace(type_, shape=(*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :]))
        types.append((tensor, type_))
    statements = tuple(_rewritten(s, dimensions, name) for s in program.statements)
    return replace(program, statements=statements, sizes=tuple(sorted(sizes.items())), types=tuple(types))


_APART = -1
"""Where the axes are, but not side by side."""


def _accesses(statement: Statement) -> Iterator[Access]:
    yield statement.target
    yield from accesses(statement.value)


def _alone(index: Index, size: Mapping[str, int]) -> str | None:
    """Return the axis that is the whole subscript; axes of one element change nothing."""
    terms = [(axis, times) for axis, times in index.terms if size[axis] > 1]
    return terms[0][0] if len(terms) == 1 and terms[0][1] == 1 and index.offset == 0 else None


def _dimension(access: Access, program: Program, outer: str, inner: str) -> int | None:
    """Find the dimension of the outer axis, where the inner one's is next; None where there is neither."""
    used = [axis for index in access.index for axis, _ in index.terms]
    if outer not in used and inner not in used:
        return None
    # Edges would lie inside the fused axis.
    if used.count(outer) != 1 or used.count(inner) != 1 or access.pad is not None:
        return _APART
    names = [_alone(index, program.size) for index in access.index]
    if outer not in names[:-1]:
        return _APART
    d = names.index(outer)
    # The next row follows only where rows are walked to their end.
    whole = program.type[access.tensor].shape[d + 1] == program.size[inner]
    return d if names[d + 1] == inner and whole else _APART


def _rewritten(statement: Statement, dimensions: Mapping[str, int | None], name: str) -> Statement:
    def access(old: Access) -> Access:
        dimension = dimensions[old.tensor]
        if dimension is None:
            return old
        index = (*old.index[:dimension], Index(((name, 1),)), *old.index[dimension + 2 :])
        return replace(old, index=index)

    def value(expr: Expr) -> Expr:
        if isinstance(expr, Access):
            return access(expr)
        return replace(expr, args=tuple(map(value, expr.args))) if isinstance(expr, Apply) else expr

    return replace(statement, target=access(statement.target), value=value(statement.value))
