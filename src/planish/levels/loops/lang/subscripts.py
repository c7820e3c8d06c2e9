"""Subscripts that are more than axes: gathers from tensors, and scatters into targets.

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
from math import prod

from planish.core.errors import ProgramError
from planish.levels.loops.lang.draft import Draft, Shapes
from planish.levels.loops.lang.program import (
    GATHER,
    Access,
    Apply,
    Expr,
    Index,
    Program,
    Statement,
    accesses,
    parts,
    rewritten,
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
    """Refuse tables that are no inputs, or whose shape is not known; raises ProgramError."""
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
                f"Give --shape {table.tensor}=...",
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
