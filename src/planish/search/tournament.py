"""Individuals of an evolution: in order of rank, and who wins of two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planish.core import Candidate, Costs, dominates

if TYPE_CHECKING:
    from numpy.random import Generator

    from planish.search.nondominated import Selected

Select = Callable[[Sequence[Costs], int], "Sequence[Selected]"]
"""`planish.search.nondominated.select`, which needs DEAP and is imported where a searcher is made."""


@dataclass(frozen=True)
class Individual:
    """A candidate that was measured.

    Args:
        candidate: that.
        costs: by all objectives; less is better.
        crowding: its crowding distance on its front, once it was ranked.
    """

    candidate: Candidate
    costs: Costs
    crowding: float = 0.0


def ranked(pool: Sequence[Individual], most: int, select: Select) -> list[Individual]:
    """Give so many of some, the best first, with their crowding."""
    chosen = select([each.costs for each in pool], most)
    return [replace(pool[one.place], crowding=one.crowding) for one in chosen]


def winner(individuals: Sequence[Individual], generator: Generator) -> Individual:
    """Hold a tournament of two: dominance decides, then the lesser crowding, then chance."""
    # Where only one is left to draw from, it wins against itself.
    places = generator.choice(len(individuals), min(2, len(individuals)), replace=False)
    one, other = individuals[places[0]], individuals[places[-1]]
    if dominates(one.costs, other.costs):
        return one
    if dominates(other.costs, one.costs) or other.crowding > one.crowding:
        return other
    return one
