"""The gate: what each list of a coreset may still save on a function, before any is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.learn.cost.model import CostModel, Dataset, Floats
from planish.learn.cost.trees import BoostedTrees
from planish.learn.cost_table import CostTable

Passes = tuple[str, ...]
Numbers = NDArray[np.integer] | NDArray[np.floating]
_TOTAL = "TotalInsts"


@dataclass(frozen=True)
class Gate:
    """Predicts what lists save beside those before them, when they are run in their order.

    Args:
        objective: what is made less.
        llvm: whose lists were run.
        lists: in the order in which they are to be run on every function.
        names: of the features of a function.
        model: of the share of -Oz's cost that each list saves.
        version: of what the names of the features mean.
    """

    objective: str
    llvm: str
    lists: tuple[Passes, ...]
    names: tuple[str, ...]
    model: CostModel
    version: int

    def require(self, names: Sequence[str], version: int) -> None:
        """See that it may be asked with features.

        Args:
            names: of the features.
            version: of what they mean.

        Raises:
            PlanishError: it learnt from others.
        """
        if (tuple(names), version) != (self.names, self.version):
            what = f"the gate is for version {self.version} of its features, and these are version {version}"
            if tuple(names) != self.names:
                what = "the gate is for features of other names"
            raise PlanishError(what, "Train one for these: planish corpus costs, planish corpus gate.")

    def gains(self, features: Numbers, unoptimised: Numbers, baseline: Numbers) -> Floats:
        """Expect what each list saves beside those before it, (n, lists), in the objective's unit.

        Args:
            features: (n, 2, names), before and after -Oz.
            unoptimised: (n,), what the functions cost as they are, in the objective's unit.
            baseline: (n,), after -Oz.
        """
        asked = describe_functions(self.names, features, unoptimised[:, None], baseline[:, None])
        # The best so far never gets worse by running another list, so less than nothing is the model's error.
        share = np.maximum(self.model.predict(asked).mean, 0)
        return share * baseline[:, None].astype(np.float32)


def train_gate(table: CostTable, objective: str, lists: Sequence[Passes], seed: int = 0) -> Gate:
    """Learn from what lists cost on functions.

    Args:
        table: of the functions to learn from.
        objective: what is made less.
        lists: some of the table's, in the order in which they are to be run.
        seed: of all randomness.

    Raises:
        PlanishError: the table has no functions or no features, or lacks a list.
    """
    columns = table.columns
    lacks = [f"the list {','.join(passes)}" for passes in lists if passes not in columns.lists]
    lacks += ["functions to learn from"] * (not len(table))
    lacks += ["features of functions"] * (_TOTAL not in columns.features)
    if lacks:
        raise PlanishError(f"the table lacks {lacks[0]}", "Add to it: planish corpus costs CORPUS FILE.")
    # What a list adds to those before it, not what it saves: lists are run in their order, and the best is
    # kept.
    best = np.maximum.accumulate(table.saved(objective)[:, [columns.lists.index(p) for p in lists]], axis=1)
    place = columns.objectives.index(objective)
    unoptimised, baseline = table.unoptimised[:, [place]], table.baseline[:, [place]]
    # As shares, so that large functions do not make up the whole error.
    shares = np.diff(best, axis=1, prepend=0) / np.maximum(baseline, 1)
    model = BoostedTrees(seed=seed)
    asked = describe_functions(columns.features, table.features, unoptimised, baseline)
    model.fit(Dataset(asked, shares.astype(np.float32)))
    return Gate(objective, columns.llvm, tuple(lists), columns.features, model, columns.version)


def describe_functions(
    names: Sequence[str], features: Numbers, unoptimised: Numbers, baseline: Numbers
) -> Floats:
    """Give what a gate is asked with: features before and after -Oz, their densities after it, and costs.

    Args:
        names: of the features.
        features: (n, 2, names), before and after -Oz.
        unoptimised: (n, objectives).
        baseline: (n, objectives), after -Oz.
    """
    before, after = features[:, 0], features[:, 1]
    total = np.maximum(after[:, [list(names).index(_TOTAL)]], 1)
    left = baseline / np.maximum(unoptimised, 1)
    return np.concatenate(
        [before, after, after / total, unoptimised, baseline, left], axis=1, dtype=np.float32
    )
