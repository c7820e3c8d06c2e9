"""Gradient-boosted trees with a vector in each leaf: one model predicts all outputs, by NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from planish.learn.cost.grow import Grower, Ints, Mask
from planish.learn.cost.model import Dataset, Floats, Prediction
from planish.learn.cost.walk import TreeWalk

_LEARNT = ("start", "features", "thresholds", "leaves")


@dataclass
class BoostedTrees:
    """Boosted regression trees for the squared error, by NumPy alone.

    Each tree is grown on a random projection of the outputs' residuals, and its leaves hold means of all of
    them: as good as a tree for each output, and as quick as one (Joly, Wehenkel and Geurts 2014, "Random
    forests with random projections of the output space"). Projections have positive weights here: what makes
    many outputs great is to be found first.

    Args:
        rounds: trees.
        depth: of each; it has 2**depth leaves.
        rate: how much of its leaves each tree adds.
        least: rows on either side of a split.
        bins: a feature is compared with so many of its quantiles.
        rows: what share of the rows each tree is grown on.
        columns: what share of the features it may ask for.
        seed: of all randomness.
    """

    rounds: int = 200
    depth: int = 4
    rate: float = 0.06
    least: int = 20
    bins: int = 64
    rows: float = 0.5
    columns: float = 0.5
    seed: int = 0
    start: Floats = field(init=False)
    features: NDArray[np.int16] = field(init=False)
    thresholds: Floats = field(init=False)
    leaves: NDArray[np.float16] | Floats = field(init=False)
    _walk: TreeWalk | None = field(init=False, default=None, repr=False, compare=False)

    def fit(self, data: Dataset) -> None:
        """Learn, in place of what was learnt before."""
        random = np.random.default_rng(self.seed)
        grower = Grower(data.features, self.bins, self.depth, self.least)
        self.start = data.targets.mean(axis=0, dtype=np.float64).astype(np.float32)
        left = data.targets - self.start
        grown: list[tuple[NDArray[np.int16], Floats, NDArray[np.float16]]] = []
        for _ in range(self.rounds):
            weights = random.exponential(size=left.shape[1]).astype(np.float32)
            rows = random.random(len(left)) < self.rows
            tree = grower.grow(left @ weights, rows, random.random(data.features.shape[1]) < self.columns)
            leaves = (self.rate * _means(left, tree.leaf, rows, 2**self.depth)).astype(np.float16)
            # By the leaves as float16 has them, so that later trees mend what rounding did.
            left -= leaves[tree.leaf]
            grown.append((tree.features, tree.thresholds, leaves))
        self.features, self.thresholds, self.leaves = (np.stack(each) for each in zip(*grown, strict=True))
        # The old one holds the questions of the trees before.
        self._walk = None

    def predict(self, features: Floats) -> Prediction:
        """Expect the targets of (n, width) features."""
        if self._walk is None:
            self._walk = TreeWalk(self.features, self.thresholds)
        parts = [self._sum(leaf) for leaf in self._walk.leaves(features)]
        return Prediction(np.concatenate(parts) if parts else np.empty((0, len(self.start)), np.float32))

    def _sum(self, leaf: Ints) -> Floats:
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
        """Give the model as it was after so many rounds."""
        made = replace(self, rounds=rounds)
        made.start = self.start
        made.features, made.thresholds = self.features[:rounds], self.thresholds[:rounds]
        made.leaves = self.leaves[:rounds]
        return made

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
        made = cls()
        for name in _LEARNT:
            setattr(made, name, arrays[name])
        return made


def _means(targets: Floats, leaf: Ints, rows: Mask, count: int) -> Floats:
    """Give the mean of the targets in each leaf, over some rows; 0 where there is none."""
    # As a product of matrices: it sums all outputs of all leaves in one call.
    member = np.zeros((count, int(rows.sum())), np.float32)
    member[leaf[rows], np.arange(member.shape[1])] = 1
    return member @ targets[rows] / np.maximum(member.sum(axis=1), 1)[:, None]
