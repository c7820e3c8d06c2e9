"""Several global models as one: each learnt from programs of its own, and what they expect is averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planish.learn.cost.model import Floats, Prediction, Predicts
from planish.learn.cost.saved import SavedModel

SAMPLE = 64
"""Candidates of a space by which models are brought to one scale."""


def shares(models: Sequence[SavedModel]) -> list[float]:
    """Tell how much of a pool's word is each model's: in proportion to the programs that it learnt from.

    On recorded programs that neither model saw, such a pool of two orders as well as the larger model alone,
    and better where the smaller has learnt from eight or more. By the square root or the logarithm of the
    programs it is behind where the smaller has learnt from few (`experiments/autotvm/pooling.py`).
    """
    programs = [max(1, model.programs) for model in models]
    return [count / sum(programs) for count in programs]


@dataclass(frozen=True)
class Pooled:
    """Expects the mean of what several models expect, weighted.

    Models that learnt an order predict on scales of their own, so each is centred and scaled: by what it
    predicts for one sample of the space. To scale each batch by itself would be as if all batches were
    equally good, and what a local model learnt to add to one would not fit the next.

    Args:
        members: the models.
        weights: (members,), of the scaled predictions.
        middles: (members,), of what they predict for the sample.
    """

    members: Sequence[Predicts]
    weights: NDArray[np.float64]
    middles: NDArray[np.float64]

    @staticmethod
    def of(models: Sequence[SavedModel], sample: Floats) -> Pooled:
        """Pool models.

        Args:
            models: of the same features.
            sample: (n, width), of candidates of the space.
        """
        told = np.stack([model.predicts.predict(sample).mean[:, 0] for model in models]).astype(np.float64)
        spreads, parts = told.std(axis=1), np.array(shares(models))
        # Who expects the same of all has no order to tell.
        weights = np.divide(parts, spreads, out=np.zeros(len(models)), where=spreads > 0)
        # Back to a scale as the models have it: what is learnt beside them has theirs.
        return Pooled([model.predicts for model in models], weights * (parts @ spreads), told.mean(axis=1))

    def predict(self, features: Floats) -> Prediction:
        """Expect the order of the costs of (n, width) features; (n, 1)."""
        each = np.stack([member.predict(features).mean[:, 0] for member in self.members])
        mean = self.weights @ (each - self.middles[:, None])
        return Prediction(mean[:, None].astype(np.float32))
