"""Individuals of an evolution: their ranks by fronts and crowding, and tournaments of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planish.core import Candidate, Costs, crowding_distances, dominates, nondominated_sort

if TYPE_CHECKING:
    from numpy.random import Generator


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


def ranked(pool: Sequence[Individual], most: int) -> list[Individual]:
    """Select the best: front after front, and of each front the least crowded first.

    Args:
        pool: where to select from.
        most: how many to select; there may be fewer.

    Returns:
        The selected ones with their crowding, the best first.
    """
    found = list[Individual]()
    for front in nondominated_sort([each.costs for each in pool]):
        crowding = crowding_distances([pool[place].costs for place in front])
        # Greatest distance first, so that a front that is cut keeps its ends and its sparse parts.
        found += sorted(
            (replace(pool[p], crowding=c) for p, c in zip(front, crowding, strict=True)),
            key=lambda each: -each.crowding,
        )
        if len(found) >= most:
            break
    return found[:most]


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
