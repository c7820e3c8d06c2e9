"""Fitting of a global cost model to a store: it learns the order of candidates of all programs of a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planish.core import (
    Candidate,
    CanFeaturise,
    FeatureSchema,
    Level,
    PlanishError,
    ScheduleError,
    Trial,
)
from planish.core.ranks import rank_correlation
from planish.models.cost_model import Dataset, Floats, Predicts, dataset_of, top_recall
from planish.models.model_files import SavedModel, made_model
from planish.models.tree_gru import TreeGru
from planish.models.trees import BoostedTrees, XgboostTrees
from planish.store import Reader
from planish.train.samples import hash_number
from planish.tuning.transfer import known_tasks, space_of

FEWEST = 8
"""Trials of a program, below which there is little to learn of their order."""
TOP = 8
HELD = 5
"""Every fifth program, by its name's hash, is held back, to measure how good the model is."""


@dataclass(frozen=True)
class Learnt:
    """Trials of some programs.

    Args:
        schema: of the features.
        data: a row for each trial; groups are indices of the programs.
        programs: their canonical texts.
    """

    schema: FeatureSchema
    data: Dataset
    programs: Sequence[str]

    @property
    def held(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which rows are of programs that are held back."""
        # By the text's hash: the same programs are held back whatever else the store has, and in which order.
        chosen = [hash_number(text) % HELD == 0 for text in self.programs]
        assert self.data.groups is not None
        return np.array(chosen, bool)[self.data.groups]


def read_trials(store: Reader, level: Level[Any]) -> Learnt:
    """Read a store's trials on a level's programs, by the leading objective of each task.

    What another version of the level measured is left out, and a warning says so.

    Raises:
        PlanishError: it knows nothing of the level that can be learnt from.
    """
    schema: FeatureSchema | None = None
    features, costs, groups, programs = list[Floats](), list[float | None](), list[int](), list[str]()
    for stored in known_tasks(store, level):
        space = space_of(level, stored, CanFeaturise)
        # Columns of another schema mean other things: they cannot stand in one table.
        if space is None or (schema is not None and space.schema != schema):
            continue
        schema = space.schema
        trials, found = _described(space, store.trials(stored.key, level.steps))
        mine = [trial.cost(stored.objectives[0]) for trial in trials]
        # Where all failed, or all are equal, there is no order to learn.
        different = {cost for cost in mine if cost is not None and np.isfinite(cost)}
        if len(trials) < FEWEST or len(different) < 2:
            continue
        features.append(found)
        costs += mine
        groups += [len(programs)] * len(trials)
        programs.append(stored.program)
    if schema is None or not features:
        raise PlanishError(
            f"the store has no trials of the level '{level.name}' with features and costs that differ",
            f"Tune some programs first, with {FEWEST} trials each at least.",
        )
    return Learnt(schema, dataset_of(np.concatenate(features), costs, groups), programs)


def fit_model(
    level: str, learnt: Learnt, objective: str = "rank", seed: int = 0, kind: str = "trees"
) -> SavedModel:
    """Fit a model on all programs; its metrics are of one that was fitted without those that are held back.

    Args:
        level: of the programs.
        learnt: what is known of them.
        objective: "rank" or "regression".
        seed: of all randomness.
        kind: "trees" or "tree-gru".

    Raises:
        PlanishError: XGBoost, or for a TreeGRU PyTorch, is not installed.
    """
    held, metrics = learnt.held, dict[str, float]()
    if held.any() and not held.all():
        metrics = evaluate(
            _fitted(learnt, learnt.data.rows(~held), objective, seed, kind), learnt.data.rows(held)
        )
    # Shipped with all that is known; the metrics above are those of a model that had seen less.
    predicts = _fitted(learnt, learnt.data, objective, seed, kind)
    return made_model(level, learnt.schema, objective, metrics, learnt.data, predicts)


def _fitted(learnt: Learnt, data: Dataset, objective: str, seed: int, kind: str) -> BoostedTrees | TreeGru:
    if kind == "tree-gru":
        network = TreeGru(objective, seed=seed, names=learnt.schema.names)
        network.fit(data)
        return network
    grown = XgboostTrees(objective, rounds=200, depth=5, rate=0.15, seed=seed)
    grown.fit(data)
    return grown.trees


def evaluate(model: Predicts, data: Dataset) -> dict[str, float]:
    """Return how well a model orders the trials of programs: means over the programs."""
    predicted, measured = model.predict(data.features).mean[:, 0], data.targets[:, 0]
    assert data.groups is not None
    mine = [data.groups == number for number in np.unique(data.groups)]
    best = [measured[rows][np.argsort(predicted[rows], kind="stable")[:TOP]].min() for rows in mine]
    return {
        "programs": float(len(mine)),
        "rank correlation": float(np.mean([rank_correlation(predicted[r], measured[r]) for r in mine])),
        f"top {TOP} recall": float(np.mean([top_recall(predicted[r], measured[r], TOP) for r in mine])),
        f"best of {TOP} over best": float(
            np.exp(np.mean(np.array(best) - [measured[r].min() for r in mine]))
        ),
    }


def _described(space: CanFeaturise, trials: Sequence[Trial]) -> tuple[Sequence[Trial], Floats]:
    """Return the trials whose candidates have features, with these; calls of a library have none."""
    try:
        return trials, space.features([trial.candidate for trial in trials])
    except ScheduleError:
        known = [trial for trial in trials if _has_features(space, trial.candidate)]
        return known, space.features([trial.candidate for trial in known])


def _has_features(space: CanFeaturise, candidate: Candidate) -> bool:
    try:
        space.features([candidate])
    except ScheduleError:
        return False
    return True
