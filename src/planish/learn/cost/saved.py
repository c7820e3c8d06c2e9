"""What a cost model knows of itself: which features it is asked with, what it learnt from, how good it is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from planish import __version__
from planish.core import FeatureSchema
from planish.learn.cost.model import Dataset
from planish.learn.cost.model_facts import ModelFacts
from planish.learn.cost.tree_gru import TreeGru
from planish.learn.cost.trees import BoostedTrees


@dataclass(frozen=True)
class SavedModel(ModelFacts):
    """A model that knows what it is for.

    Args:
        level, schema, objective, metrics, rows, programs, training, version: see `ModelFacts`.
        predicts: what predicts.
    """

    predicts: BoostedTrees | TreeGru

    @property
    def kind(self) -> str:
        """What predicts: "trees" or "tree-gru"."""
        return "tree-gru" if isinstance(self.predicts, TreeGru) else "trees"

    def fits(self, schema: FeatureSchema) -> bool:
        """Whether it may be asked with these features."""
        return self.schema == schema


def hash_of(data: Dataset) -> str:
    """Name what is learnt from by its content."""
    digest = hashlib.sha256()
    for array in (data.features, data.targets, data.groups):
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def made_model(
    level: str,
    schema: FeatureSchema,
    objective: str,
    metrics: Mapping[str, float],
    data: Dataset,
    predicts: BoostedTrees | TreeGru,
) -> SavedModel:
    """Say of what predicts what it was learnt from."""
    programs = 1 if data.groups is None else len(np.unique(data.groups))
    counts = len(data.targets), programs
    return SavedModel(level, schema, objective, metrics, *counts, hash_of(data), __version__, predicts)
