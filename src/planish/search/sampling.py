"""New candidates from a space that may find nothing legal where it looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planish.core import Candidate, CanEvolve, CanSample, ScheduleError
from planish.search.visited import Visited

if TYPE_CHECKING:
    from numpy.random import Generator

TRIES = 20
"""Samples in a row in which a space finds nothing legal, after which it counts as used up."""


def sample(space: CanSample, rng: Generator) -> Candidate | None:
    """Draw a candidate; None where the space finds none in `TRIES` draws."""
    for _ in range(TRIES):
        try:
            return space.sample(rng)
        except ScheduleError:
            continue
    return None


def neighbour(space: CanEvolve, candidate: Candidate, rng: Generator) -> Candidate | None:
    """Give a neighbour; where the space finds none, a sample; None where it finds none of these either."""
    try:
        return space.mutate(candidate, rng)
    except ScheduleError:
        return sample(space, rng)


def new_sample(space: CanSample, visited: Visited, rng: Generator) -> Candidate | None:
    """Draw until a candidate is new, and note it; None where the space seems used up."""
    return visited.fresh(sample(space, rng), lambda _: sample(space, rng))


def new_from(space: CanEvolve, visited: Visited, child: Candidate, rng: Generator) -> Candidate | None:
    """Change a candidate until it is new, and note it; None where the space seems used up."""
    return visited.fresh(child, lambda candidate: neighbour(space, candidate, rng))


def changed(space: CanEvolve, candidate: Candidate, times: int, rng: Generator) -> Candidate:
    """Change a candidate so many times; it stays as it is where the space finds nothing legal at all."""
    for _ in range(times):
        candidate = neighbour(space, candidate, rng) or candidate
    return candidate
