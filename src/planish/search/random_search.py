"""Random search and exhaustive search, which learn nothing from what they measure."""

from collections.abc import Iterator, Sequence
from itertools import count

from planish.core import EMPTY_CONTEXT, Candidate, CanEnumerate, CanSample, Objective, SearchContext, rng
from planish.search.proposals import Visited, new_sample
from planish.search.rounds import Recall, RoundSearcher, single_round

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
        super().__init__(objectives, single_round(_distinct(space, seed, recall)), recall)


def _distinct(space: CanSample, seed: int, recall: Recall) -> Iterator[Candidate]:
    # A shuffle visits everything once; sampling the last few of a space takes far more draws than it has.
    if isinstance(space, CanEnumerate) and space.size() <= SMALL:
        return _shuffled(space, seed)
    return _samples(space, seed, recall)


def _shuffled(space: CanEnumerate, seed: int) -> Iterator[Candidate]:
    visited, listed = Visited(space), list(space.candidates())
    for place in rng(seed).permutation(len(listed)):
        if visited.add(listed[place]):
            yield listed[place]


def _samples(space: CanSample, seed: int, recall: Recall) -> Iterator[Candidate]:
    """Draw different candidates until the space seems used up; the i-th is drawn by `rng(seed, i)`."""
    visited = Visited(space, recall)
    for index in count():
        candidate = visited.recalled() or new_sample(space, visited, rng(seed, index))
        if candidate is None:
            return
        yield candidate


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
