"""The synthetic space, and the random programs, are what their descriptions say."""

from collections.abc import Callable, Mapping
from math import prod

import pytest
from hypothesis import Phase, find, given, settings

from amounts import examples
from levels.loops.random_programs import programs
from planish.core import Candidate, Failed, Space, Step
from planish.levels.loops.lang.program import Access, Apply, Expr, Program, accesses
from planish.search.tree_search import BeamBFS, BeamDFS, Greedy1, Greedy2
from planish.testing.searchers import drive
from planish.testing.spaces import SpaceConformance
from planish.testing.synthetic import Lattice, Set


class TestLattice(SpaceConformance):
    def space(self) -> Lattice:
        return Lattice()

    def known_steps(self) -> Mapping[str, type[Step]]:
        return Lattice.known_steps

    def replay(self, space: Space, candidate: Candidate) -> None:
        assert isinstance(space, Lattice)
        space.position(candidate)


def _best(searcher: Greedy1 | Greedy2 | BeamDFS | BeamBFS, lattice: Lattice) -> float:
    trials = drive(searcher, lattice.outcome, lattice.size())
    return min(cost for t in trials if (cost := t.cost(lattice.objective)) is not None)


@pytest.mark.parametrize(
    ("ridge", "stuck1", "stuck2"), [(0, False, False), (1, True, False), (2, True, True)]
)
def test_look_ahead_decides_which_ridge_is_crossed(ridge: int, stuck1: bool, stuck2: bool) -> None:
    lattice = Lattice(ridge=ridge)
    one, two = (_best(kind(lattice, [lattice.objective], 0), lattice) for kind in (Greedy1, Greedy2))
    assert (one > lattice.optimum()) is stuck1
    assert (two > lattice.optimum()) is stuck2


@pytest.mark.parametrize("kind", [BeamDFS, BeamBFS])
def test_beams_cross_the_wide_ridge(kind: type[BeamDFS | BeamBFS]) -> None:
    lattice = Lattice(ridge=2)
    assert _best(kind(lattice, [lattice.objective], 0, width=2), lattice) == lattice.optimum()


def test_the_optimum_is_where_it_should_be() -> None:
    lattice = Lattice()
    assert lattice.optimum() == pytest.approx(1e-3 * 0.95**5)
    assert lattice.outcome(lattice.at([5, 2, 2])) == lattice.table()[lattice.at([5, 2, 2]).hash]
    assert len(lattice.table()) == lattice.size() == 96


def test_the_wall_fails() -> None:
    lattice = Lattice()
    assert isinstance(lattice.outcome(lattice.at([0, 0, 3])), Failed)


@pytest.mark.parametrize("steps", [(Set(0, 6),), (Set(3, 1),), (Set(1, 1), Set(0, 1)), (Set(0, 0),)])
def test_what_is_not_on_the_lattice_is_refused(steps: tuple[Set, ...]) -> None:
    with pytest.raises(ValueError, match="not on the lattice"):
        Lattice().position(Candidate(steps))


def test_ruggedness_makes_times_longer_by_no_more_than_it_says() -> None:
    smooth, rugged = Lattice(), Lattice(ruggedness=0.5)
    ratios = [
        rugged.outcome(c).values["time_s"] / smooth.outcome(c).values["time_s"]  # type: ignore[union-attr]
        for c in smooth.candidates()
        if not isinstance(smooth.outcome(c), Failed)
    ]
    assert 1 <= min(ratios) < 1.1
    assert 1.4 < max(ratios) <= 1.5


def functions_of(expr: Expr) -> set[str]:
    return {expr.function}.union(*map(functions_of, expr.args)) if isinstance(expr, Apply) else set()


@settings(max_examples=examples(80))
@given(programs(points=200, dtypes=["float64"], functions=["relu", "add"], reductions=["add"]))
def test_choices_are_kept(program: Program) -> None:
    assert {t.dtype for _, t in program.types} == {"float64"}
    for s in program.statements:
        assert functions_of(s.value) <= {"relu", "add", "mul"}
        assert s.reduce in (None, "add")
        assert prod(program.size[axis] for axis in s.axes) <= 400


@settings(max_examples=examples(80))
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
