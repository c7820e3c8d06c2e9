"""Random search and exhaustive search, which learn nothing from what they measure."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count

from planish.core import EMPTY_CONTEXT, Candidate, CanEnumerate, CanSample, Objective, SearchContext, rng
from planish.search.rounds import Recall, RoundSearcher, Visited, new_candidates, new_sample, single_round

SMALL = 10_000
"""The largest space that is listed and shuffled rather than sampled."""


class Random(RoundSearcher):
    """Random search without replacement (thesis 3.7; AutoTVM's random tuner).

    A finite space of at most 10,000 candidates is shuffled, and all of it is visited. Any other is
    sampled, and the search ends after 1,000 repeats in a row.
    """

    needs = CanSample

    def __init__(
        self,
        space: CanSample,
        objectives: Sequence[Objective],
        seed: int,
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
    ) -> None:
        recall = Recall()
        # A shuffle visits everything once; sampling the last few of a space takes far more draws than it has.
        if isinstance(space, CanEnumerate) and space.size() <= SMALL:
            candidates = _shuffled(space, seed)
        else:
            visited = Visited(space, recall)
            candidates = new_candidates(visited, seed, count(), partial(new_sample, space, visited))
        super().__init__(objectives, single_round(candidates), recall)


def _shuffled(space: CanEnumerate, seed: int) -> Iterator[Candidate]:
    visited, listed = Visited(space), list(space.candidates())
    return filter(visited.add, (listed[index] for index in rng(seed).permutation(len(listed))))


class Exhaustive(RoundSearcher):
    """Every candidate of a finite space, in the space's order; the seed plays no part."""

    needs = CanEnumerate

    def __init__(
        self,
        space: CanEnumerate,
        objectives: Sequence[Objective],
        seed: int,  # noqa: ARG002
        context: SearchContext = EMPTY_CONTEXT,  # noqa: ARG002
    ) -> None:
        super().__init__(objectives, single_round(space.candidates()))
