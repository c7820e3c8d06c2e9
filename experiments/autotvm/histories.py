"""What was tried on other programs, and global models of it (section 4 of AutoTVM)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from searching import TIME, machine, space_of

from planish.core import Trial
from planish.learn.cost import XgboostTrees, dataset_of, made_model, write_model

TRIALS = 192
SEED = 1000
"""Of the sources' searches: none of the others has it."""

History = dict[str, Sequence[Trial]]


def history(names: Sequence[str]) -> History:
    """Try candidates of each program: half of them random, half as the genetic searcher wants them."""
    found: History = {}
    for name in names:
        with machine(name) as here:
            tried = [
                trial
                for searcher in ("random", "genetic")
                for trial in here.search(searcher, {}, SEED, TRIALS // 2)[1]
            ]
        found[name] = tried
        print("history of", name, len(tried), flush=True)
    return found


def transferred(known: History, representation: str, path: Path) -> Path:
    """Fit a global model of a history, and write it."""
    spaces = {name: space_of(name, representation) for name in known}
    features = [spaces[name].features([trial.candidate for trial in known[name]]) for name in known]
    costs = [trial.cost(TIME) for name in known for trial in known[name]]
    groups = [number for number, name in enumerate(known) for _ in known[name]]
    data = dataset_of(np.concatenate(features), costs, groups)
    grown = XgboostTrees(rounds=200, depth=5, rate=0.15)
    grown.fit(data)
    schema = next(iter(spaces.values())).schema
    write_model(made_model("loops", schema, "rank", {}, data, grown.trees), path)
    return path
