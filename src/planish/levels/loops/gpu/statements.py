"""Statements of a program as GPU kernels compute them.

A nest that takes another one's sums element by element is part of its kernel. Any other reader is in a kernel
of its own, and shares no loop: its axes have other names. A sum that does not stay in a kernel is made in a
tensor of its own, `C_1[m,n] += ...; C[m,n] = C_1[m,n]`, which lies in the registers of threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from planish.core import ScheduleError
from planish.levels.loops.gpu.steps import SplitReduction
from planish.levels.loops.ir.schedule import graph_of
from planish.levels.loops.lang.draft import fresh, is_spread
from planish.levels.loops.lang.program import (
    Access,
    Expr,
    Index,
    Program,
    Statement,
    TensorType,
    accesses,
    rewritten,
)


@lru_cache(maxsize=64)
def accumulated(program: Program) -> Program:
    """Sum what leaves a kernel in a tensor of its own, and give each kernel's nests axes of their own."""
    groups = _kernels_of(program)
    program = _with_own_axes(program, groups)
    inside = {s.target.tensor: number for s, number in zip(program.statements, groups, strict=True)}
    leaving = {*program.outputs} | {
        access.tensor
        for s, number in zip(program.statements, groups, strict=True)
        for access in accesses(s.value)
        if inside.get(access.tensor, number) != number
    }
    statements, types = list[Statement](), dict(program.types)
    names = set(types)
    for s in program.statements:
        tensor = s.target.tensor
        if s.reduce is None or tensor not in leaving or is_spread(s.target):
            statements.append(s)
            continue
        inner = fresh(tensor, names)
        whole = Access(inner, tuple(Index(((axis, 1),)) for axis in s.output_axes))
        types[inner] = TensorType(tuple(program.size[a] for a in s.output_axes), program.arithmetic)
        statements += [Statement(whole, s.reduce, s.value), Statement(s.target, None, whole)]
    order = [*_read_first(statements), *(s.target.tensor for s in statements)]
    known = dict.fromkeys((*order, *types))
    return replace(program, statements=tuple(statements), types=tuple((n, types[n]) for n in known))


def _kernels_of(program: Program) -> list[int]:
    """Number the kernels of the statements.

    Sums are read in their own kernel where the reader's result has all their axes, at the same subscripts:
    then it is in the same loops. Another reader begins the next kernel.
    """
    found, number = list[int](), 0
    written: dict[str, Statement] = {}
    for s in program.statements:
        read = [(a, written[a.tensor].target) for a in accesses(s.value) if a.tensor in written]
        axes = {axis for _, target in read for index in target.index for axis, _ in index.terms}
        inside = all(a.index == target.index for a, target in read) and axes <= {*s.output_axes}
        if not inside and any(each.reduce for each in written.values()):
            number, written = number + 1, {}
        written[s.target.tensor] = s
        found.append(number)
    return found


def _with_own_axes(program: Program, groups: Sequence[int]) -> Program:
    """Rename the axes that several kernels have, but in the one with most work."""
    size, parts = program.size, [*zip(program.statements, groups, strict=True)]
    graph = graph_of(program)
    main = groups[program.statements.index(graph.nests[graph.main].statement)]
    axes = {number: {a for s, n in parts if n == number for a in s.axes} for number in {*groups}}
    first = {number: s.target.tensor for s, number in reversed(parts)}

    def named(axis: str, number: int) -> str:
        several = sum(axis in each for each in axes.values()) > 1
        return f"{axis}.{first[number]}" if several and number != main else axis

    def moved(access: Access, number: int) -> Access:
        index = [tuple(sorted((named(a, number), c) for a, c in each.terms)) for each in access.index]
        return replace(access, index=tuple(map(Index, index, (each.offset for each in access.index))))

    def renamed(s: Statement, number: int) -> Statement:
        value = rewritten(s.value, lambda e: moved(e, number) if isinstance(e, Access) else None)
        return Statement(moved(s.target, number), s.reduce, value)

    sizes = {named(a, number): size[a] for number, own in axes.items() for a in own}
    statements = tuple(renamed(s, number) for s, number in parts)
    return replace(program, statements=statements, sizes=tuple(sorted(sizes.items())))


PART, WITHIN, SUMMED = ".part", ".in", ".sum"
"""Axes that a divided one becomes: the number of a part, its elements, and the parts that are added up."""


def split_reduction(program: Program, step: SplitReduction) -> Program:
    """Divide the reduction of a program's main nest.

    `T[m] += A[m,k]` becomes `P[k.part,m] += A[m, k.part + parts * k.in]; R[k.part,m] = P[k.part,m];
    T[m] += R[k.sum,m]`; among blocks the subscript is `length * k.part + k.in`.

    Raises:
        ScheduleError: the main nest does not reduce the axis, or it is not divided evenly.
    """
    graph, axis = graph_of(program), step.axis
    nest = graph.nests[graph.main]
    s, size = nest.statement, program.size
    if axis not in nest.reduced or is_spread(s.target) or s.reduce is None:
        raise ScheduleError(
            f"the main nest does not reduce axis '{axis}' into elements of its own", "Name another."
        )
    if step.over not in ("threads", "blocks"):
        raise ScheduleError(f"a reduction is not divided among '{step.over}'", "Use threads or blocks.")
    if not 1 < step.parts < size[axis] or size[axis] % step.parts:
        what = f"axis '{axis}' of {size[axis]} elements is not divided into {step.parts} parts"
        raise ScheduleError(what, "Parts are several, of several elements, and equal.")
    length = size[axis] // step.parts
    # Neighboring threads read neighboring elements; a block has a part in sequence.
    strides = (1, step.parts) if step.over == "threads" else (length, 1)
    names = {name for name, _ in program.types}
    part, whole = fresh(s.target.tensor, names), fresh(s.target.tensor, names)
    out = tuple(Index(((a, 1),)) for a in s.output_axes)

    def divided(expr: Expr) -> Expr | None:
        if not isinstance(expr, Access):
            return None
        return replace(expr, index=tuple(_divided(index, axis, *strides) for index in expr.index))

    own = Access(part, (Index(((axis + PART, 1),)), *out))
    statements: list[Statement] = []
    for other in program.statements:
        if other != s:
            statements.append(other)
            continue
        statements += [
            Statement(own, s.reduce, rewritten(s.value, divided)),
            Statement(replace(own, tensor=whole), None, own),
            Statement(s.target, s.reduce, Access(whole, (Index(((axis + SUMMED, 1),)), *out))),
        ]
    kind = TensorType((step.parts, *(size[a] for a in s.output_axes)), program.arithmetic)
    types = dict(program.types)
    known = [*_read_first(statements), *(each.target.tensor for each in statements), *types]
    types |= {part: kind, whole: kind}
    sizes = {**size, axis + PART: step.parts, axis + WITHIN: length, axis + SUMMED: step.parts}
    return replace(
        program,
        statements=tuple(statements),
        sizes=tuple(sorted(sizes.items())),
        types=tuple((name, types[name]) for name in dict.fromkeys(known)),
    )


def _divided(index: Index, axis: str, part: int, within: int) -> Index:
    terms = dict(index.terms)
    c = terms.pop(axis, 0)
    if c:
        terms |= {axis + PART: c * part, axis + WITHIN: c * within}
    return Index(tuple(sorted(terms.items())), index.offset)


def _read_first(statements: Sequence[Statement]) -> Iterator[str]:
    written = {s.target.tensor for s in statements}
    return (a.tensor for s in statements for a in accesses(s.value) if a.tensor not in written)
