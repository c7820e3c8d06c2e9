"""Trees grown by XGBoost, which is an extra; what they predict is read off without it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from planish.core import PlanishError
from planish.learn.cost.model import Dataset, Floats, Prediction
from planish.learn.cost.trees import BoostedTrees

PAIRS = 4
"""With so many others each row is compared, for the rank objective."""
_RANK = {
    "objective": "rank:pairwise",
    "lambdarank_pair_method": "mean",
    "lambdarank_num_pair_per_sample": PAIRS,
    "lambdarank_unbiased": False,
}
_REGRESSION = {"objective": "reg:squarederror"}


def can_grow() -> bool:
    """Whether XGBoost is installed."""
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
        """Whether XGBoost is installed."""
        return can_grow()

    @property
    def sizes(self) -> Sequence[int]:
        """Numbers of trees that are worth trying, the greatest first."""
        return [count for count in (self.rounds, self.rounds // 2, self.rounds // 4) if count]

    def sized(self, size: int) -> Self:
        """Give a model of so many trees that has learnt nothing."""
        return replace(self, rounds=size)

    def first(self, size: int) -> BoostedTrees:
        """Give the first trees of what was learnt."""
        return self.trees.first(size)

    def fit(self, data: Dataset, margin: Floats | None = None) -> None:
        """Learn, in place of what was learnt before.

        Args:
            data: with one target.
            margin: (n,), what another model expects; the trees learn what is to be added to it.

        Raises:
            PlanishError: XGBoost is not installed.
        """
        if not can_grow():
            raise PlanishError(
                "models are learnt by XGBoost, which is not installed", "pip install planish[learn]"
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
        """What XGBoost is told."""
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
            splits, place = children[0, node] >= 0, slice(2**level - 1, 2 ** (level + 1) - 1)
            # XGBoost asks "less than", our trees "not greater": the next smaller float makes them one
            # question.
            below = np.nextafter(conditions[node], np.float32(-np.inf))
            made.features[number, place] = np.where(splits, used[asked[node]], 0)
            made.thresholds[number, place] = np.where(splits, below, np.inf)
            # A leaf above the last level is repeated below it, so that the tree is complete.
            node = np.where(splits, children[:, node], node).T.ravel()
        made.leaves[number, :, 0] = sign * conditions[node]
    return made
