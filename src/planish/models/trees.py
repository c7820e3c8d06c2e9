"""Boosted regression trees: grown by XGBoost, evaluated by NumPy.

To follow each row down each tree takes three reads of memory a level. Here each comparison of a column with
a threshold is computed first, once for all rows: an operation on whole arrays, of which processors do many
elements at a time. What is left of a tree is a selection among bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.core.installation import install_command
from planish.models.cost_model import Dataset, Floats, Prediction

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
        """Yield where rows end in each tree, from 0 at the left; (trees, at most `ROWS` rows) at a time."""
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
        for leaves, ends in zip(self.leaves, leaf, strict=True):
            mean += leaves[ends]
        return mean.astype(np.float32)

    def first(self, rounds: int) -> Self:
        """Return the model truncated to its first trees."""
        return replace(
            self,
            features=self.features[:rounds],
            thresholds=self.thresholds[:rounds],
            leaves=self.leaves[:rounds],
        )

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the fitted parameters, for a file."""
        return {name: getattr(self, name) for name in _LEARNT}

    def fits(self, width: int, outputs: int = 1) -> bool:
        """Return whether the trees are complete, read existing features and have this number of outputs."""
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


PAIRS = 4
"""Others with which each row is compared, for the rank objective."""
_RANK = {
    "objective": "rank:pairwise",
    "lambdarank_pair_method": "mean",
    "lambdarank_num_pair_per_sample": PAIRS,
    "lambdarank_unbiased": False,
}
_REGRESSION = {"objective": "reg:squarederror"}


def can_grow() -> bool:
    """Return whether XGBoost is installed."""
    return find_spec("xgboost") is not None


@dataclass
class XgboostTrees:
    """Boosted trees for one cost; less is better. They learn costs, or only their order.

    Args:
        objective: "rank" (equation 2 of AutoTVM, pairs of one group) or "regression".
        rounds: trees.
        depth: of each.
        rate: how much of its leaves each tree adds.
        rows: what share of the rows each tree is grown on.
        columns: what share of the features each node may ask for.
        seed: of all randomness.

    Attributes:
        trees: what was learnt.
    """

    objective: str = "rank"
    rounds: int = 40
    depth: int = 3
    rate: float = 0.2
    rows: float = 0.8
    columns: float = 0.4
    seed: int = 0
    trees: BoostedTrees = field(init=False)

    @property
    def can_learn(self) -> bool:
        """Return whether XGBoost is installed."""
        return can_grow()

    @property
    def sizes(self) -> Sequence[int]:
        """Numbers of trees that are worth trying, the greatest first."""
        return [count for count in (self.rounds, self.rounds // 2, self.rounds // 4) if count]

    def sized(self, size: int) -> Self:
        """Return an unfitted model with this number of trees."""
        return replace(self, rounds=size)

    def first(self, size: int) -> BoostedTrees:
        """Return the first trees of the fitted model."""
        return self.trees.first(size)

    def fit(self, data: Dataset, margin: Floats | None = None) -> None:
        """Learn, instead of what was learnt before.

        Args:
            data: with one target.
            margin: (n,), what another model expects; the trees learn what is to be added to it.

        Raises:
            PlanishError: XGBoost is not installed.
        """
        if not can_grow():
            raise PlanishError(
                "models are trained by XGBoost, which is not installed", install_command("learn")
            )
        import xgboost

        # Within one program most columns are constant: the others are a third, or less.
        used = np.flatnonzero(np.ptp(data.features, axis=0)) if len(data.features) else np.zeros(0, np.intp)
        if not len(used) or not np.ptp(data.targets):
            self.trees = _constant(self._start(data, margin))
            return
        groups = np.zeros(len(data.targets), np.intp) if data.groups is None else data.groups
        # Sorted, since XGBoost takes groups as runs of rows.
        order = np.argsort(groups, kind="stable")
        # XGBoost ranks what is greater first, and costs are better where they are less.
        start, sign = (0.0, -1) if self.objective == "rank" else (self._start(data, margin), 1)
        known = np.zeros(len(order), np.float32) if margin is None else margin
        # On one thread: others measure meanwhile, and on a busy machine threads wait for each other.
        matrix = xgboost.DMatrix(data.features[order][:, used], sign * data.targets[order, 0], nthread=1)
        matrix.set_base_margin(sign * (known[order] + np.float32(start)))
        if self.objective == "rank":
            matrix.set_group(np.unique(groups, return_counts=True)[1])
        with xgboost.config_context(nthread=1):
            booster = xgboost.train(self.parameters, matrix, self.rounds)
        learner = json.loads(booster.save_raw("json"))["learner"]
        grown: Sequence[Mapping[str, Any]] = learner["gradient_booster"]["model"]["trees"]
        self.trees = _read(grown, self.depth, used, sign, start)

    def predict(self, features: Floats) -> Prediction:
        """Expect the cost of (n, width) features, up to a factor where only its order was learnt; (n, 1)."""
        return self.trees.predict(features)

    def _start(self, data: Dataset, margin: Floats | None) -> float:
        if self.objective == "rank" or not len(data.targets):
            return 0.0
        return float((data.targets[:, 0] - (0 if margin is None else margin)).mean())

    @property
    def parameters(self) -> dict[str, object]:
        """Return the parameters of XGBoost."""
        return {
            **(_RANK if self.objective == "rank" else _REGRESSION),
            "max_depth": self.depth,
            "eta": self.rate,
            "subsample": self.rows,
            "colsample_bynode": self.columns,
            "min_child_weight": 0 if self.objective == "rank" else 2,
            "tree_method": "hist",
            "nthread": 1,
            "seed": self.seed % 2**31,
            "base_score": 0.0,
        }


def _constant(start: float) -> BoostedTrees:
    return BoostedTrees(
        np.array([start], np.float32),
        np.zeros((0, 0), np.int16),
        np.zeros((0, 0), np.float32),
        np.zeros((0, 1, 1), np.float32),
    )


def _read(trees: Sequence[Mapping[str, Any]], depth: int, used: Any, sign: int, start: float) -> BoostedTrees:
    """Write XGBoost's trees as complete ones; it goes to the second child where a feature is not less."""
    inner = 2**depth - 1
    made = BoostedTrees(
        np.array([start], np.float32),
        np.zeros((len(trees), inner), np.int16),
        np.full((len(trees), inner), np.inf, np.float32),
        np.zeros((len(trees), inner + 1, 1), np.float32),
    )
    for number, tree in enumerate(trees):
        children = np.array([tree["left_children"], tree["right_children"]], np.intp)
        asked = np.array(tree["split_indices"], np.intp)
        conditions = np.array(tree["split_conditions"], np.float32)
        node = np.zeros(1, np.intp)
        for level in range(depth):
            splits, nodes = children[0, node] >= 0, slice(2**level - 1, 2 ** (level + 1) - 1)
            # XGBoost asks "less than", our trees "not greater": the next smaller float makes them one
            # question.
            below = np.nextafter(conditions[node], np.float32(-np.inf))
            made.features[number, nodes] = np.where(splits, used[asked[node]], 0)
            made.thresholds[number, nodes] = np.where(splits, below, np.inf)
            # A leaf above the last level is repeated below it, so that the tree is complete.
            node = np.where(splits, children[:, node], node).T.ravel()
        made.leaves[number, :, 0] = sign * conditions[node]
    return made
