"""Hill climbing with restarts: a searcher for planish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import TYPE_CHECKING, Annotated

from planish.core import EMPTY_CONTEXT, Candidate, CanEvolve, Objective, ScheduleError, SearchContext, rng
from planish.search import Option, Rounds, RoundSearcher

if TYPE_CHECKING:
    from numpy.random import Generator

PATIENCE = 1_000
"""Draws without a new candidate, after which the space counts as used up."""


class Climb(RoundSearcher):
    """Hill climbing: moves to the best of a few neighbors, and begins elsewhere where none is better."""

    needs = CanEvolve

    def __init__(
        self,
        space: CanEvolve,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
        *,
        tries: Annotated[int, Option("neighbors that are measured before it moves", least=1)] = 8,
    ) -> None:
        super().__init__(objectives, climb(space, seed, tries))


def climb(space: CanEvolve, seed: int, tries: int) -> Rounds:
    """Climb again and again, each time from another sample, until no sample is new.

    What is yielded is measured, and comes back as a mapping from hash to cost; None where it failed.

    Args:
        space: where to search.
        seed: the randomness of the i-th climb is `rng(seed, i)`.
        tries: neighbors of each round.
    """
    seen: set[str] = set()
    for index in count():
        generator = rng(seed, index)
        here = next(_new(space.sample, generator, seen, PATIENCE), None)
        if here is None:
            return
        cost = (yield [here])[here.hash]
        # A start that failed is no hill: no direction leads up.
        while cost is not None:
            draw = partial(space.mutate, here)
            neighbors = list(islice(_new(draw, generator, seen, 10 * tries), tries))
            costs = yield neighbors
            below = cost
            for each in neighbors:
                if (found := costs[each.hash]) is not None and found < cost:
                    here, cost = each, found
            if cost == below:
                break


def _new(
    draw: Callable[[Generator], Candidate], generator: Generator, seen: set[str], draws: int
) -> Iterator[Candidate]:
    """Draw so many times, and give what is new."""
    for _ in range(draws):
        try:
            candidate = draw(generator)
        except ScheduleError:  # the space found nothing legal where it looked
            continue
        if candidate.hash not in seen:
            seen.add(candidate.hash)
            yield candidate
