"""A constraint at the end of a run: a finalist is shortened only to what the constraint accepts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from planish.core import Candidate
from planish.core.capabilities import CanShrink
from planish.search.minimization import shrink
from planish.testing.synthetic import Lattice
from planish.tuning.final_state import ConstrainedSpace


def anything(candidates: Sequence[Candidate]) -> list[bool]:
    return [True for _ in candidates]


@pytest.mark.parametrize("least", [0, 1, 2])
def test_steps_go_only_where_the_constraint_accepts_what_is_left(least: int) -> None:
    space = Lattice()
    asked = list[Candidate]()

    def has_enough(candidate: Candidate) -> bool:
        asked.append(candidate)
        return len(candidate.steps) >= least

    candidate = space.at((3, 2, 1))
    constrained = ConstrainedSpace(space, has_enough)
    assert isinstance(constrained, CanShrink)
    assert len(shrink(space, candidate, anything).steps) == 0
    left = shrink(constrained, candidate, anything)
    assert len(left.steps) == least
    assert asked


def test_it_is_the_same_space_otherwise() -> None:
    space = Lattice()
    constrained = ConstrainedSpace(space, lambda _: True)
    candidate = space.at((1, 2, 0))
    assert constrained.start() == space.start()
    assert constrained.state_key(candidate) == space.state_key(candidate)
    assert constrained.program_key(candidate) == space.program_key(candidate)
    assert constrained.machine == space.machine
