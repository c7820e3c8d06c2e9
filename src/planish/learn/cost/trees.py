"""Boosted regression trees with a vector in each leaf: prediction of all outputs by NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from planish.learn.cost.model import Floats, Prediction
from planish.learn.cost.walk import TreeWalk

_LEARNT = ("start", "features", "thresholds", "leaves")


@dataclass
class BoostedTrees:
    """Complete binary trees; node i has the children 2i+1 and 2i+2.

    Args:
        start: (outputs,), what is predicted before any tree.
        features: (trees, inner nodes), which feature each inner node asks for.
        thresholds: (trees, inner nodes); a row goes to the second child where its feature is greater.
            Infinite where nothing splits.
        leaves: (trees, inner nodes + 1, outputs), what each leaf adds.
    """

    start: Floats
    features: NDArray[np.int16]
    thresholds: Floats
    leaves: NDArray[np.float16] | Floats
    _walk: TreeWalk | None = field(init=False, default=None, repr=False, compare=False)

    def predict(self, features: Floats) -> Prediction:
        """Expect the targets of (n, width) features."""
        if self._walk is None:
            self._walk = TreeWalk(self.features, self.thresholds)
        parts = [self._sum(leaf) for leaf in self._walk.leaves(features)]
        return Prediction(np.concatenate(parts) if parts else np.empty((0, len(self.start)), np.float32))

    def _sum(self, leaf: NDArray[np.intp]) -> Floats:
        """Add the leaves up where rows ended, (trees, n), to the start; their order shows in no digit."""
        if len(self.start) == 1:  # all look-ups at once
            count = self.leaves.shape[1]
            found = self.leaves.ravel().take(leaf + count * np.arange(len(leaf))[:, None])
            return np.add.reduce(found, axis=0, dtype=np.float64, initial=self.start[0]).astype(np.float32)[
                :, None
            ]
        # In float64, so that sums do not depend on how many rows are predicted at once.
        mean = np.tile(self.start.astype(np.float64), (leaf.shape[1], 1))
        for leaves, places in zip(self.leaves, leaf, strict=True):
            mean += leaves[places]
        return mean.astype(np.float32)

    def first(self, rounds: int) -> Self:
        """Return the model as it was after so many trees."""
        return replace(
            self,
            features=self.features[:rounds],
            thresholds=self.thresholds[:rounds],
            leaves=self.leaves[:rounds],
        )

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Give what was learnt, for a file."""
        return {name: getattr(self, name) for name in _LEARNT}

    def fits(self, width: int, outputs: int = 1) -> bool:
        """Whether its trees are complete, ask for features that there are, and give so many outputs."""
        trees, inner = self.features.shape
        shapes = self.thresholds.shape, self.leaves.shape, self.start.shape
        asked = 0 <= self.features.min(initial=0) <= self.features.max(initial=0) < width
        whole = shapes == ((trees, inner), (trees, inner + 1, outputs), (outputs,))
        return whole and not inner & (inner + 1) and bool(asked)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make a model of what a file holds.

        Raises:
            KeyError: an array is missing.
        """
        return cls(**{name: arrays[name] for name in _LEARNT})
