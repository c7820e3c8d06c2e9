"""What a gate, and trees on AutoPhase's features, would choose of the lists that `collect.py` ran."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ways import BUDGETS

from planish.models.cost_model import Dataset
from planish.train.cost_tables import FAILED, CostTable, read_costs

sys.path.insert(0, str(Path(__file__).parents[1]))

from gate_model import EvaluationShares, describe_functions, kept_gate
from grown_trees import GrownTrees

LABELS = Path(__file__).parents[1] / "labels" / "joined-lists.npz"
"""What the gate and the policy learnt from, and so what the trees learn from."""
OBJECTIVE = "instructions"
GATE, POLICY, MEAN = "the gate", "the policy", "the mean of both"
Floats = NDArray[np.floating]
Tried = Sequence[Mapping[str, Any]]


def gains_of(tried: Tried) -> Mapping[str, Floats]:
    """Give what each list is expected to save beside those before it, in instructions."""
    gate, baseline = kept_gate(OBJECTIVE), column(tried, "baseline")
    gated = gate.gains(column(tried, "features"), column(tried, "unoptimized"), baseline)
    read = np.maximum(column(tried, "gains"), 0) * baseline[:, None]
    return {GATE: gated, POLICY: read, MEAN: (gated + read) / 2}


def by_trees(tried: Tried) -> Mapping[str, Any]:
    """Give the least cost of so many lists of each function, those first that trees hold for the best."""
    order = np.argsort(-worth_by_trees(tried), axis=1, kind="stable")
    best = np.minimum.accumulate(np.take_along_axis(column(tried, "costs"), order, axis=1), axis=1)
    places = [min(count, best.shape[1]) - 1 for count in BUDGETS]
    return {"best": best[:, places].tolist(), "unique": [place + 1 for place in places]}


def worth_by_trees(tried: Tried) -> Floats:
    """Predict what each list alone is worth, as Coreset-NVP does: the share of -Oz's cost that it saves."""
    labels, lists = read_costs(LABELS).split("train"), kept_gate(OBJECTIVE).lists
    costs = costs_of(labels)[:, [labels.columns.lists.index(each) for each in lists]]
    before = labels.baseline[:, :1]
    model = GrownTrees(seed=0)
    worth = np.maximum((before - costs) / np.maximum(before, 1), -1)
    names, mine = labels.columns.features, (labels.features, labels.unoptimized[:, :1], before)
    model.fit(Dataset(describe_functions(names, *mine), worth.astype(np.float32)))
    counted = [column(tried, name)[:, None] for name in ("unoptimized", "baseline")]
    return model.predict(describe_functions(names, column(tried, "features"), *counted)).mean


def costs_of(labels: CostTable) -> Floats:
    """Give costs of lists; where one fails, of the function as it is."""
    place = labels.columns.objectives.index(OBJECTIVE)
    costs = labels.costs[:, :, place]
    return np.where(costs == FAILED, labels.unoptimized[:, [place]], costs)


def spent_over_all(tried: Tried) -> Mapping[str, Sequence[Floats]]:
    """Give what is saved on each function where as many evaluations are given to those that promise most."""
    saved = np.maximum(column(tried, "baseline")[:, None] - column(tried, "costs"), 0)
    return {name: spend(gains, saved) for name, gains in gains_of(tried).items()}


def spend(gains: Floats, saved: Floats) -> list[Floats]:
    shares, after, number = EvaluationShares(gains), list[Floats](), len(saved)
    for done in range(1, number * BUDGETS[-1] + 1):
        if (given := shares.next()) is not None:
            shares.tell(given[0], saved[given])
        if done % number == 0 and done // number in BUDGETS:
            after.append(shares.saved.copy())
    return after


def column(tried: Tried, name: str) -> Any:
    return np.array([each[name] for each in tried])
