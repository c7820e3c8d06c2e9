"""Finds the leaves where rows end in complete trees, by operations on whole arrays of bytes.

To follow each row down each tree is three look-ups in memory a level. Here every question that is asked
anywhere is answered first, once for all rows: a comparison of a column with a number, which processors do
many of at a time. What is left of a tree is to choose among answers by answers, and those are bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

ROWS = 256
"""As many at a time that the answers stay in a cache of a megabyte or two."""


class TreeWalk:
    """The questions of some trees, each once.

    Args:
        features: (trees, inner nodes), the column that a node asks for, level by level.
        thresholds: of the same shape; a row goes to the right where its column is greater.
    """

    def __init__(self, features: NDArray[np.int16], thresholds: Floats) -> None:
        # Column and threshold as one number, so that equal questions are found by sorting numbers.
        keys = features.ravel().astype(np.uint64) << np.uint64(32)
        keys |= np.ascontiguousarray(thresholds, np.float32).view(np.uint32).ravel()
        questions, numbers = np.unique(keys, return_inverse=True)
        self._columns = (questions >> np.uint64(32)).astype(np.intp)
        self._thresholds = questions.astype(np.uint32).view(np.float32)[:, None]
        self._trees, inner = features.shape
        by_node = np.ascontiguousarray(numbers.reshape(features.shape).T)
        starts = [2**level - 1 for level in range(inner.bit_length())]
        self._levels = [by_node[start : 2 * start + 1].ravel() for start in starts]

    def leaves(self, features: Floats) -> Iterator[NDArray[np.intp]]:
        """Give where rows end in each tree, from 0 at the left; (trees, at most `ROWS` rows) at a time."""
        for first in range(0, len(features), ROWS):
            yield self._walk(features[first : first + ROWS])

    def _walk(self, features: Floats) -> NDArray[np.intp]:
        # A column in one piece: each question reads one column of all rows.
        columns = np.ascontiguousarray(features.T)
        answers = (columns.take(self._columns, axis=0) > self._thresholds).view(np.uint8)
        leaf = np.zeros((self._trees, len(features)), np.intp)
        turns: list[Bytes] = []
        for asked in self._levels:
            nodes = answers.take(asked, axis=0).reshape(-1, *leaf.shape)
            turns.append(_met(nodes, turns))
            leaf = 2 * leaf + turns[-1]
        return leaf


def _met(nodes: Bytes, turns: list[Bytes]) -> Bytes:
    """Choose the answers of the nodes of a level that were met: each turn drops half of those left."""
    for right in turns:
        half = len(nodes) // 2
        left, chosen = nodes[:half], nodes[half:]
        chosen ^= (
            left  # left ^ (right & (left ^ chosen)) is `chosen` where right is 1, and left where it is 0
        )
        chosen &= right
        chosen ^= left
        nodes = chosen
    return nodes[0]
