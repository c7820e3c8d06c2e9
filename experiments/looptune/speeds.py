"""A cost model of the cursor's nests: what was measured of some teaches how fast all others are."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import xgboost
from loop_orders import axes_of, walked
from nests import described, nests_of
from numpy.typing import NDArray

from planish.levels.loops.lang.program import Program

Floats = NDArray[np.float32]
Known = Mapping[int, Mapping[str, float]]
"""Number of a program to what was measured of it: digits of its actions to GFLOPS."""

SETTINGS = {
    "max_depth": 8,
    "eta": 0.06,
    "subsample": 0.8,
    "colsample_bytree": 0.4,
    "tree_method": "hist",
    "max_bin": 64,
}
FOLDS = 4
DOUBTFUL = 0.2
"""What was measured as slow and models of other programs hold for faster by so much is left out.

A timing that another process disturbed cannot be distinguished from a slow one afterwards; it is repeated.
"""


def read_measured(path: Path) -> Known:
    """Read what `measuring` wrote; of what was measured twice the faster counts, and a cut line does not."""
    found: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        found[row["p"]][row["a"]] = max(row["g"], found[row["p"]].get(row["a"], 0.0))
    return found


def rows_of(programs: Sequence[Program], known: Known) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Give features, speeds as shares of each program's best, and numbers of programs."""
    features, speeds, groups = list[Floats](), list[Floats](), list[NDArray[np.int64]]()
    for number, ways in known.items():
        rates = np.array(list(ways.values()), np.float32)
        extents = [programs[number].size[axis] for axis in axes_of(programs[number])]
        orders = [walked(extents, way)[0] for way in ways]
        features.append(described(nests_of(programs[number], orders)))
        speeds.append(rates / rates.max())
        groups.append(np.full(len(rates), number))
    return np.concatenate(features), np.concatenate(speeds), np.concatenate(groups)


def fitted(features: Floats, speeds: Floats, groups: NDArray[np.int64], rounds: int = 500) -> xgboost.Booster:
    """Learn speeds from what is not doubtful."""
    guessed = np.zeros_like(speeds)
    for fold in range(FOLDS):
        mine = groups % FOLDS == fold
        guessed[mine] = _boosted(features[~mine], speeds[~mine], rounds // 3).inplace_predict(features[mine])
    doubtful = (speeds < 1 / 3) & (guessed > speeds + DOUBTFUL)
    error = float(np.sqrt(np.mean((guessed - speeds)[~doubtful] ** 2)))
    count = len(np.unique(groups))
    print(
        f"{len(speeds):,} nests of {count} programs, {doubtful.sum()} doubtful; error {error:.3f}", flush=True
    )
    return _boosted(features[~doubtful], speeds[~doubtful], rounds)


def _boosted(features: Floats, speeds: Floats, rounds: int) -> xgboost.Booster:
    data = xgboost.QuantileDMatrix(features, speeds, max_bin=SETTINGS["max_bin"])
    return xgboost.train({**SETTINGS, "nthread": 1}, data, rounds)
