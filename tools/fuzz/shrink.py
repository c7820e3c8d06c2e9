"""From a case that fails to the smallest that still does: fewer steps, smaller sizes, fewer tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial

from fuzz.case import Case, judge
from planish.core import Candidate, PlanishError, Step
from planish.levels.loops.backends import schedule_of
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.lang.program import Apply, Expr, Program, Statement, accesses
from planish.sandbox import ExitStatus
from planish.sandbox.fork_pool import ForkLimits, in_child

PATIENCE_S = 10
"""Of the processor, for one case."""
MOST_TRIES = 600


def fails(case: Case) -> bool:
    """Return whether a case is wrong or crashes; tried in a child of this process."""
    tried = in_child(partial(judge, case), tuple[str, str], ForkLimits(PATIENCE_S))
    return isinstance(tried, ExitStatus) or tried[0] in ("wrong", "crashed")


def shrink(case: Case) -> Case:
    """Make a failing case smaller as long as it fails; it must fail now."""
    tries = 0
    better = True
    while better:
        better = False
        for smaller in smaller_ones(case):
            tries += 1
            if tries > MOST_TRIES:
                return case
            if legal(smaller) and fails(smaller):
                case, better = smaller, True
                break
    return case


def legal(case: Case) -> bool:
    """Return whether a case's steps fit its program."""
    try:
        schedule_of(parse_canonical(case.program), case.candidate)
    except PlanishError:
        return False
    return True


def smaller_ones(case: Case) -> Iterator[Case]:
    """List simpler cases, those that take most away first."""
    program, steps = parse_canonical(case.program), case.candidate.steps
    if case.special:
        yield replace(case, special=False)
    if case.cores > 1:
        yield replace(case, cores=1)
    for text in _programs(program):
        yield replace(case, program=text)
    for i in range(len(steps)):
        yield case.with_candidate(Candidate((*steps[:i], *steps[i + 1 :])))
    for i, step in enumerate(steps):
        for simpler in _steps(step):
            yield case.with_candidate(Candidate((*steps[:i], simpler, *steps[i + 1 :])))


def _steps(step: Step) -> Iterator[Step]:
    """Return a step without one of the loops that it names."""
    for field in fields(step):
        value = getattr(step, field.name)
        if isinstance(value, tuple) and len(value) > 2:
            for i in range(len(value)):
                yield replace(step, **{field.name: (*value[:i], *value[i + 1 :])})


def _programs(program: Program) -> Iterator[str]:
    """List simpler programs."""
    statements = program.statements
    for i in reversed(range(len(statements))):
        if len(statements) > 1:
            yield from _made(program, (*statements[:i], *statements[i + 1 :]), program.size)
    for i, statement in enumerate(statements):
        for value in _values(statement.value):
            changed = replace(statement, value=value)
            yield from _made(program, (*statements[:i], changed, *statements[i + 1 :]), program.size)
    for axis, n in program.sizes:
        for size in sorted({1, 2, n // 2, n - 8, n - 1}):
            if 0 < size < n:
                yield from _made(program, statements, {**program.size, axis: size})
    if program.constants:
        yield program.with_constants(()).text


def _values(expr: Expr) -> Iterator[Expr]:
    """List simpler values: a part instead of the whole, at any depth."""
    if isinstance(expr, Apply):
        yield from expr.args
        for i, arg in enumerate(expr.args):
            for simpler in _values(arg):
                yield replace(expr, args=(*expr.args[:i], simpler, *expr.args[i + 1 :]))


def _made(program: Program, statements: tuple[Statement, ...], sizes: dict[str, int]) -> Iterator[str]:
    """Return the text of the program that these statements make, if they make one."""
    used = {axis for statement in statements for axis in statement.axes}
    kept = {axis: n for axis, n in sizes.items() if axis in used}
    try:
        made = parse("; ".join(map(str, statements)), kept, dtype=_types(program, statements))
    except PlanishError:
        return
    yield made.with_constants(t for t in program.constants if t in made.inputs).text


def _types(program: Program, statements: tuple[Statement, ...]) -> dict[str, str]:
    named = {t for s in statements for t in (s.target.tensor, *(a.tensor for a in accesses(s.value)))}
    return {name: kind.dtype for name, kind in program.types if name in named}
