"""What was tried on other programs, and global models of it (section 4 of AutoTVM)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from searching import LEVEL, TIME, machine, space_of

from planish.core import Candidate, candidate_from_json
from planish.learn.cost import XgboostTrees, dataset_of, made_model, write_model

TRIALS = 192
SEED = 1000
"""Of the sources' searches: none of the others has it."""


@dataclass(frozen=True)
class Tried:
    """A candidate that was tried.

    Args:
        program: name of what was tuned.
        steps: of the candidate, as JSON.
        cost: seconds; None where it failed.
    """

    program: str
    steps: list[Any]
    cost: float | None

    @property
    def candidate(self) -> Candidate:
        """The candidate itself."""
        return candidate_from_json(self.steps, LEVEL.steps)


def history(names: Sequence[str], path: Path) -> Sequence[Tried]:
    """Try candidates of each program, half of them random, half as the genetic searcher wants them.

    Args:
        names: of the programs.
        path: where it is kept; what is there is not tried again.
    """
    found = _read(path)
    for name in names:
        if any(each.program == name for each in found):
            continue
        with machine(name) as here:
            trials = [
                trial
                for searcher in ("random", "genetic")
                for trial in here.search(searcher, {}, SEED, TRIALS // 2)[1]
            ]
        mine = [Tried(name, [s.to_json() for s in t.candidate.steps], t.cost(TIME)) for t in trials]
        found += mine
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(vars(each)) + "\n" for each in mine)
        print("history of", name, len(mine), flush=True)
    return [each for each in found if each.program in names]


def _read(path: Path) -> list[Tried]:
    if not path.exists():
        return []
    return [Tried(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def transferred(known: Sequence[Tried], representation: str, path: Path) -> Path:
    """Fit a global model of a history, and write it."""
    names = list(dict.fromkeys(each.program for each in known))
    spaces = {name: space_of(name, representation) for name in names}
    mine = {name: [each for each in known if each.program == name] for name in names}
    features = [spaces[name].features([each.candidate for each in mine[name]]) for name in names]
    costs = [each.cost for name in names for each in mine[name]]
    groups = [number for number, name in enumerate(names) for _ in mine[name]]
    data = dataset_of(np.concatenate(features), costs, groups)
    grown = XgboostTrees(rounds=200, depth=5, rate=0.15)
    grown.fit(data)
    schema = next(iter(spaces.values())).schema
    write_model(made_model("loops", schema, "rank", {}, data, grown.trees), path)
    return path
