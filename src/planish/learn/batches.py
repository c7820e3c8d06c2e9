"""How many candidates a guided search measures before its model learns again."""

from __future__ import annotations

from collections.abc import Iterator

FIRST, MOST, GROWTH = 4, 64, 0.125
"""The defaults of `batch_sizes`."""


def batch_sizes(first: int = FIRST, most: int = MOST, growth: float = GROWTH) -> Iterator[int]:
    """Give the sizes of batches, without end: in proportion to what was measured before.

    A model learns most from its first few candidates, so batches begin small.

    Args:
        first: candidates of the first batch, and of any at least.
        most: candidates of a batch at most.
        growth: a batch is so many times what was measured before it.
    """
    measured = 0
    while True:
        size = min(most, max(first, int(growth * measured)))
        yield size
        measured += size
