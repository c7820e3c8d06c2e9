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
    """Tell how much of a pool's word is each model's: by the square root of the programs that it learnt from.

    On recorded programs that neither saw, such a pool ordered candidates at least as well as the model of
    most programs alone. By their logarithm it was a little worse, and by their number a little better: but a
    user's few programs are more like the next one than those were (`experiments/autotvm/pooling.py`).
    """
    roots = np.sqrt([max(1, model.programs) for model in models])
    return (roots / roots.sum()).tolist()


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
