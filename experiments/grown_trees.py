"""Boosted regression trees, grown by NumPy alone: one model for many outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planish.models.cost_model import Dataset, Floats, Prediction
from planish.models.trees import BoostedTrees

Ints = NDArray[np.intp]
Mask = NDArray[np.bool_]
_TINY = 1e-9


@dataclass
class GrownTrees:
    """Boosted regression trees for the squared error.

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

    Attributes:
        trees: what was learnt.
    """

    rounds: int = 200
    depth: int = 4
    rate: float = 0.06
    least: int = 20
    bins: int = 64
    rows: float = 0.5
    columns: float = 0.5
    seed: int = 0
    trees: BoostedTrees = field(init=False)

    def fit(self, data: Dataset) -> None:
        """Learn, in place of what was learnt before."""
        random = np.random.default_rng(self.seed)
        grower = Grower(data.features, self.bins, self.depth, self.least)
        start = data.targets.mean(axis=0, dtype=np.float64).astype(np.float32)
        left = data.targets - start
        grown: list[tuple[NDArray[np.int16], Floats, NDArray[np.float16]]] = []
        for _ in range(self.rounds):
            weights = random.exponential(size=left.shape[1]).astype(np.float32)
            rows = random.random(len(left)) < self.rows
            tree = grower.grow(left @ weights, rows, random.random(data.features.shape[1]) < self.columns)
            leaves = (self.rate * _means(left, tree.leaf, rows, 2**self.depth)).astype(np.float16)
            # By the leaves as float16 has them, so that later trees correct what rounding did.
            left -= leaves[tree.leaf]
            grown.append((tree.features, tree.thresholds, leaves))
        features, thresholds, outputs = (np.stack(each) for each in zip(*grown, strict=True))
        self.trees = BoostedTrees(start, features, thresholds, outputs)

    def predict(self, features: Floats) -> Prediction:
        """Expect the targets of (n, width) features."""
        return self.trees.predict(features)


def _means(targets: Floats, leaf: Ints, rows: Mask, count: int) -> Floats:
    """Compute the mean of the targets in each leaf, over some rows; 0 where there is none."""
    # As a product of matrices: it sums all outputs of all leaves in one call.
    member = np.zeros((count, int(rows.sum())), np.float32)
    member[leaf[rows], np.arange(member.shape[1])] = 1
    return member @ targets[rows] / np.maximum(member.sum(axis=1), 1)[:, None]


class Tree(NamedTuple):
    """A complete binary tree; node i has the children 2i+1 and 2i+2.

    Args:
        features: of inner nodes.
        thresholds: a row goes to the second child where its feature is greater; infinite where nothing
            splits.
        leaf: the place among the leaves of each row that it was grown on.
    """

    features: NDArray[np.int16]
    thresholds: Floats
    leaf: Ints


class Grower:
    """Grows trees that reduce the squared error.

    Args:
        features: (n, width).
        bins: a feature is compared with so many of its quantiles.
        depth: of trees.
        least: rows on either side of a split.
    """

    def __init__(self, features: Floats, bins: int, depth: int, least: int) -> None:
        self._bins, self._depth, self._least = bins, depth, least
        quantiles = np.linspace(0, 1, bins + 1)[1:-1]
        self._edges = np.quantile(features, quantiles, axis=0, method="lower").astype(np.float32).T
        pairs = zip(self._edges, features.T, strict=True)
        self._binned = np.stack([np.searchsorted(edges, column, "left") for edges, column in pairs])

    def grow(self, target: Floats, rows: Mask, columns: Mask) -> Tree:
        """Grow a tree for a target (n,) on some rows, by some features."""
        inner = 2**self._depth - 1
        tree = Tree(
            np.zeros(inner, np.int16), np.full(inner, np.inf, np.float32), np.zeros(len(target), np.intp)
        )
        leaf = tree.leaf
        for level in range(self._depth):
            feature, edge = self._splits(target[rows], leaf[rows], 2**level, rows, columns)
            split = edge >= 0
            nodes = 2**level - 1 + np.flatnonzero(split)
            tree.features[nodes] = feature[split]
            tree.thresholds[nodes] = self._edges[feature[split], edge[split]]
            # Where nothing splits, all go to the first child, so that the tree stays complete.
            beyond = split[leaf] & (self._binned[feature[leaf], np.arange(len(leaf))] > edge[leaf])
            leaf = 2 * leaf + beyond
        return tree._replace(leaf=leaf)

    def _splits(self, target: Floats, node: Ints, count: int, rows: Mask, columns: Mask) -> tuple[Ints, Ints]:
        """Give for each node of a level the feature and edge that explain most; edge -1 where none does."""
        best, feature, edge = np.full(count, _TINY), np.zeros(count, np.intp), np.full(count, -1, np.intp)
        for column in np.flatnonzero(columns):
            gain = self._gains(target, node * self._bins + self._binned[column, rows], count)
            at = gain.argmax(axis=1)
            found = gain[np.arange(count), at]
            better = found > best
            best[better], feature[better], edge[better] = found[better], column, at[better]
        return feature, edge

    def _gains(self, target: Floats, key: Ints, count: int) -> NDArray[np.float64]:
        """Give what each edge takes off the squared error, (nodes, edges); 0 with too few rows on a side."""
        shape = count, self._bins
        # Node and bin in one key: one pass over the rows serves all nodes of the level.
        rows = np.bincount(key, minlength=count * self._bins).reshape(shape).cumsum(axis=1)
        sums = np.bincount(key, target, count * self._bins).reshape(shape).cumsum(axis=1)
        low, below = rows[:, :-1], sums[:, :-1]
        high, above = rows[:, -1:] - low, sums[:, -1:] - below
        # The squared error of means is the sum of squares less these, so the sum of squares cancels.
        gain = below**2 / np.maximum(low, 1) + above**2 / np.maximum(high, 1)
        gain -= sums[:, -1:] ** 2 / np.maximum(rows[:, -1:], 1)
        # Leaves of a few rows would hold their noise.
        gain[np.minimum(low, high) < self._least] = 0
        return gain
