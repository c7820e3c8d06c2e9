"""Targets that are subscripted by more than axes: `O[2*t + i] += X[t] * W[i]`, and `O[2*i] = X[i]`.

Several terms may reach one element then, and none may reach others. Such a target is filled first, with what
its reduction starts from, or 0 where it is assigned; what reaches an element is then reduced into it. So
elements that nothing reaches are 0 after `=` and `+=`, 1 after `*=`, -inf after `max=` and inf after `min=`
(the least and the greatest whole number).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from planish.core.errors import ProgramError
from planish.loops.lang.program import Access, Index, Program, Statement

Sizes = Mapping[str, int]


def is_spread(target: Access) -> bool:
    """Whether some subscript of a target is more than an axis and an offset."""
    return any([c for _, c in index.terms] != [1] for index in target.index)


def is_whole(index: Index, size: Sizes, extent: int) -> bool:
    """Whether a subscript is an axis that walks all of a dimension."""
    return [c for _, c in index.terms] == [1] and index.offset == 0 and size[index.terms[0][0]] == extent


def is_injective(index: Index, size: Sizes) -> bool:
    """Whether a subscript reaches each element once at most; no where that is not plain to see."""
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
    """Whether a subscript reaches each element of a dimension exactly once."""
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
        For each pass the target's subscripts, of one axis each, and the others' places.
    """
    yield from _passes(target.index, size, {})


def _passes(
    index: tuple[Index, ...], size: Sizes, places: dict[str, int]
) -> Iterator[tuple[tuple[Index, ...], dict[str, int]]]:
    d = next((d for d, i in enumerate(index) if len(i.terms) > 1), None)
    if d is None:
        yield index, places
        return
    terms, offset = index[d].terms, index[d].offset
    axis, coefficient = min(terms, key=lambda term: size[term[0]])
    rest = tuple(term for term in terms if term[0] != axis)
    for i in range(size[axis]):
        moved = Index(rest, offset + coefficient * i)
        yield from _passes((*index[:d], moved, *index[d + 1 :]), size, {**places, axis: i})
