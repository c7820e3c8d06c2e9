"""Global models of what was recorded of other programs (section 4 of AutoTVM)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from recorded import recorded
from searching import Setting

from planish.models.cost_model import dataset_of
from planish.models.model_files import made_model, write_model
from planish.models.trees import XgboostTrees

ROUNDS, DEPTH, RATE = 200, 5, 0.15
"""As `planish models fit` has them."""


def transferred(sources: Sequence[Setting], representation: str, rows: int, path: Path) -> Path:
    """Fit a global model on so many rows of recorded spaces, evenly chosen from all of them, and write it."""
    spaces = [recorded(source) for source in sources]
    each = rows // len(spaces) if rows else max(len(space.candidates) for space in spaces)
    chosen = [np.random.default_rng(0).permutation(len(space.candidates))[:each] for space in spaces]
    pairs = [*zip(spaces, chosen, strict=True)]
    features = np.concatenate([space.described(representation)[numbers] for space, numbers in pairs])
    costs = [space.costs[space.candidates[i].hash] for space, numbers in pairs for i in numbers]
    groups = [group for group, numbers in enumerate(chosen) for _ in numbers]
    data = dataset_of(features, costs, groups)
    grown = XgboostTrees(rounds=ROUNDS, depth=DEPTH, rate=RATE)
    grown.fit(data)
    schema = spaces[0].template.by(representation).schema
    write_model(made_model("loops", schema, "rank", {}, data, grown.trees), path)
    return path
