"""What policies over pass lists learn from and are judged by, when several are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gate import EVALUATIONS, auc, spend
from planish.core import rng
from planish.train.corpus.answers import held_back, read_list_dataset
from planish.train.cost_tables import CostTable, read_costs, read_joined
from planish.train.labeling.choice import lists_of_table
from planish.train.samples import ListDataset

OBJECTIVE = "instructions"
MOST = 40
ARRAYS = "observed", "shares", "baseline", "groups"
Floats = NDArray[np.float32]
Run = Mapping[str, Any]
Gains = Callable[[ListDataset], Floats]
"""What each list is expected to save on functions beside those before it, in instructions."""


@dataclass(frozen=True)
class Bench:
    """What all trainings share.

    Args:
        learnt: functions to learn from.
        held: those of them that tell when to stop, always the same.
        judged: functions of other packages.
        parts: of these: the two splits, both, and those on which earlier figures were made.
        table: what lists cost on all of them.
        folder: of checkpoints.
    """

    learnt: ListDataset
    held: NDArray[np.bool_]
    judged: ListDataset
    parts: Mapping[str, NDArray[np.intp]]
    table: CostTable
    folder: Path

    def drawn(self, share: float) -> NDArray[np.intp]:
        """Draw a share of the functions that are learnt from; smaller ones are parts of larger ones."""
        mine = rng(1).permutation(np.flatnonzero(~self.held))
        return mine[: round(share * len(mine))]

    def dataset(self, share: float) -> tuple[ListDataset, NDArray[np.bool_]]:
        rows = np.concatenate([self.drawn(share), np.flatnonzero(self.held)])
        return some(self.learnt, rows), self.held[rows]

    def rows(self, dataset: ListDataset) -> CostTable:
        where = {name: place for place, name in enumerate(self.table.identities.tolist())}
        return self.table.take(np.array([where[name] for name in dataset.identities]))


def bench_of(corpus: Path, labels: Sequence[Path], folder: Path) -> Bench:
    table = read_joined(labels, OBJECTIVE)
    lists = lists_of_table(table.split("train"), OBJECTIVE, MOST)
    learnt, *others = [
        read_list_dataset(corpus, [table], OBJECTIVE, lists, split)
        for split in ("train", "validation", "test")
    ]
    both, count = merged(others), len(others[0])
    first = np.flatnonzero(np.isin(both.identities, read_costs(labels[0]).identities))
    every = np.arange(len(both))
    parts = {"validation": every[:count], "test": every[count:], "both": every, "first": first}
    return Bench(learnt, held_back(learnt.groups), both, parts, table, folder)


def some(dataset: ListDataset, rows: NDArray[np.intp]) -> ListDataset:
    names = [dataset.identities[row] for row in rows.tolist()]
    return replace(dataset, identities=names, **{name: getattr(dataset, name)[rows] for name in ARRAYS})


def merged(parts: Sequence[ListDataset]) -> ListDataset:
    names = [name for each in parts for name in each.identities]
    arrays = {name: np.concatenate([getattr(each, name) for each in parts]) for name in ARRAYS}
    return replace(parts[0], identities=names, **arrays)


def judge(bench: Bench, gains: Gains) -> Run:
    """Spend evaluations over the functions of a part as the gate does, and add up by package."""
    worth = gains(bench.judged)
    return {
        "judged": {name: spent(some(bench.judged, rows), worth[rows]) for name, rows in bench.parts.items()}
    }


def spent(dataset: ListDataset, worth: Floats) -> Run:
    saved = np.rint(dataset.shares * dataset.baseline[:, None]).astype(np.int32)
    names, places = np.unique(dataset.groups, return_inverse=True)
    after = [np.bincount(places, each).tolist() for each in spend(worth, saved)]
    return {
        "auc": auc(worth.sum(axis=1), saved.max(axis=1) > 0),
        "packages": names.tolist(),
        "functions": len(dataset),
        "baseline": np.bincount(places, dataset.baseline).tolist(),
        "most": np.bincount(places, saved.max(axis=1)).tolist(),
        "saved": dict(zip(map(str, EVALUATIONS), after, strict=True)),
    }
