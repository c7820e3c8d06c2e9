"""Which representation predicts programs that a model has not seen: each quarter is held back once.

    python experiments/autotvm/held_out_programs.py

A model as `planish models fit` makes it learns from 240 rows of each of the other recorded programs, on one
core with the widest vectors. Means over the programs that were held back.
"""

from __future__ import annotations

import numpy as np
from record import SETTINGS
from recorded import Recorded, recorded
from representations import REPRESENTATIONS
from transferring import DEPTH, RATE, ROUNDS

from planish.core.ranks import rank_correlation
from planish.models.cost_model import dataset_of
from planish.models.trees import XgboostTrees

FOLDS, EACH, LEAST, TOP = 4, 240, 100, 8
"""Folds; rows of a program to learn from; rows of a program at least; so many of the best predicted."""


def learnt(spaces: list[Recorded], representation: str) -> XgboostTrees:
    """Fit a model on some rows of each space."""
    chosen = [np.random.default_rng(0).permutation(len(space.candidates))[:EACH] for space in spaces]
    pairs = [*zip(spaces, chosen, strict=True)]
    features = np.concatenate([space.described(representation)[rows] for space, rows in pairs])
    costs = [space.costs[space.candidates[i].hash] for space, rows in pairs for i in rows]
    groups = [number for number, rows in enumerate(chosen) for _ in rows]
    grown = XgboostTrees(rounds=ROUNDS, depth=DEPTH, rate=RATE)
    grown.fit(dataset_of(features, costs, groups))
    return grown


def judged(model: XgboostTrees, space: Recorded, representation: str) -> tuple[float, float, float]:
    """Give the rank correlation, and the best of the first predicted and the first one, over the best."""
    predicted = model.predict(space.described(representation)).mean[:, 0]
    costs = np.array([space.costs[each.hash] for each in space.candidates], np.float64)
    order = np.argsort(predicted, kind="stable")
    found = rank_correlation(predicted, costs.astype(np.float32))
    return found, float(costs[order[:TOP]].min() / space.best), float(costs[order[0]] / space.best)


def main() -> None:
    """Print the table."""
    usual = [each for each in SETTINGS if each.cores == 1 and not each.backend and each.dtype == "float32"]
    spaces = [space for each in usual if len((space := recorded(each)).candidates) >= LEAST]
    print(f"{len(spaces)} programs\n")
    print(f"| | columns | rank correlation | best of {TOP} over best | first over best |")
    print("|---|---|---|---|---|")
    for name in REPRESENTATIONS:
        found = list[tuple[float, float, float]]()
        for fold in range(FOLDS):
            model = learnt([space for i, space in enumerate(spaces) if i % FOLDS != fold], name)
            found += [judged(model, space, name) for space in spaces[fold::FOLDS]]
        order, *rest = np.array(found).T
        shares = " | ".join(f"{np.exp(np.log(each).mean()):.3f}" for each in rest)
        width = spaces[0].described(name).shape[1]
        print(f"| {name} | {width} | {order.mean():.2f} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
