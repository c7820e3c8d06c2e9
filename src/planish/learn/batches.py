"""Which candidates a guided search measures before its model learns again: the first ones, and how many."""

from __future__ import annotations

from collections.abc import Iterator

from planish.core import UNTAUGHT, Candidate, CanName, CanSeed, SearchContext, Space

FIRST, MOST, GROWTH = 4, 64, 0.125
"""The defaults of `batch_sizes`."""


def distinct_seeds(space: Space, context: SearchContext = UNTAUGHT) -> list[Candidate]:
    """Give what a search begins with, each state once; nothing where the space knows nothing good."""
    seeds = space.seeds(context) if isinstance(space, CanSeed) else ()
    if isinstance(space, CanName):
        return [*{space.state(each): each for each in seeds}.values()]
    return [*{each.hash: each for each in seeds}.values()]


def batch_sizes(
    first: int = FIRST, most: int = MOST, growth: float = GROWTH, seeds: int = 0
) -> Iterator[int]:
    """Give the sizes of batches, without end: in proportion to what was measured before.

    A model learns most from its first few candidates, so batches begin small.

    Args:
        first: candidates of the first batch, and of any at least.
        most: candidates of a batch at most.
        growth: a batch is so many times what was measured before it.
        seeds: what the search begins with, which fits into the first batch: it is known to be good, and the
            model begins with it.
    """
    measured = 0
    while True:
        size = min(most, max(first, int(growth * measured)))
        size = size if measured else max(size, seeds)
        yield size
        measured += size
