"""The random programs keep to what is asked of them."""

from collections.abc import Callable
from math import prod

import pytest
from hypothesis import Phase, find, given, settings

from planish.levels.loops.lang.program import Access, Apply, Expr, Program, accesses
from planish.testing.programs import programs


def functions_of(expr: Expr) -> set[str]:
    return {expr.function}.union(*map(functions_of, expr.args)) if isinstance(expr, Apply) else set()


@settings(max_examples=80)
@given(programs(points=200, dtypes=["float64"], functions=["relu", "add"], reductions=["add"]))
def test_choices_are_kept(program: Program) -> None:
    assert {t.dtype for _, t in program.types} == {"float64"}
    for s in program.statements:
        assert functions_of(s.value) <= {"relu", "add", "mul"}
        assert s.reduce in (None, "add")
        assert prod(program.size[axis] for axis in s.axes) <= 400


@settings(max_examples=80)
@given(programs(functions=[], reductions=[]))
def test_nothing_may_be_chosen(program: Program) -> None:
    assert all(s.reduce is None and not functions_of(s.value) for s in program.statements)


def occurs(holds: Callable[[Program], bool]) -> bool:
    """Whether a program like this is drawn; `find` raises if not."""
    return bool(find(programs(), holds, settings=settings(phases=[Phase.generate], max_examples=500)))


def reads(program: Program) -> list[Access]:
    return [a for s in program.statements for a in accesses(s.value)]


def test_every_kind_occurs() -> None:
    assert occurs(lambda p: any(a.pad is not None for a in reads(p)))
    assert occurs(lambda p: any(c > 1 for a in reads(p) for i in a.index for _, c in i.terms))
    assert occurs(lambda p: any(i.offset for s in p.statements for i in s.target.index))
    assert occurs(lambda p: len(p.statements) == 3)
    assert occurs(lambda p: p.types[-1][1].shape == ())


@pytest.mark.parametrize("reduce", [None, "add", "mul", "max", "min"])
def test_every_reduction_occurs(reduce: str | None) -> None:
    assert occurs(lambda p: any(s.reduce == reduce for s in p.statements))
