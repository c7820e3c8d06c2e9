"""What a search's model costs: a refit on 5,000 rows, with and without choosing its weight, and predictions.

`python benchmarks/cost_models.py`. Processor time, the least of some rounds. Rows are of candidates,
with costs made up of their features: how long trees take to grow does not depend on what is measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from planish.core import rng
from planish.levels.loops.backends import this_machine
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.workloads import matmul
from planish.models.combined import Combined
from planish.models.cost_model import Dataset, Predicts, dataset_of
from planish.models.model_files import model_named
from planish.models.trees import XgboostTrees

ROWS, ROUNDS = 5000, 3


def least(work: Callable[[], object]) -> float:
    """Give the seconds of processor time that work takes."""
    found = list[float]()
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Print a line for each."""
    space = TemplateSpace(matmul(512, 512, 512), this_machine(1))
    random = rng(1)
    features = space.features([space.sample(random) for _ in range(ROWS)])
    weights = random.normal(size=features.shape[1]) / (1 + features.std(axis=0))
    data = dataset_of(features, np.exp(0.02 * (features @ weights)).tolist())
    shipped = model_named("loops", space.schema)
    for objective in ("rank", "regression"):
        local = partial(XgboostTrees, objective)
        print(f"refit on {ROWS} rows, {objective}: {least(partial(local().fit, data)):.3f} s")
        combined = Combined(local(), shipped.predicts)
        combined.fit(data)
        print(f"  beside the shipped model, as a search does: {least(partial(combined.fit, data)):.3f} s")
        anew = least(partial(_chosen, local, shipped.predicts, data))
        print(f"  and where its weight is chosen anew, each 1.5 times the rows: {anew:.3f} s")
    rate = ROWS / least(lambda: shipped.predicts.predict(features))
    print(f"the shipped model: {rate:,.0f} predictions a second")


def _chosen(local: Callable[[], XgboostTrees], known: Predicts, data: Dataset) -> None:
    Combined(local(), known).fit(data)


if __name__ == "__main__":
    main()
