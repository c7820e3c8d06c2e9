"""The synthetic space passes the suite for spaces, and is what its description says."""

from collections.abc import Mapping

import pytest

from planish.core import Candidate, Failed, Space, Step
from planish.search import BeamBFS, BeamDFS, Greedy1, Greedy2
from planish.testing.driving import drive
from planish.testing.lattice import Lattice, Set
from planish.testing.spaces import SpaceConformance


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
