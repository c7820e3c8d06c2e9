"""Several models of resampled rows: how far they differ tells how sure they are (section 3.3 of AutoTVM)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planish.learn.cost.model import CostModel, Dataset, Decides, Floats, Prediction

ACQUISITIONS = ("mean", "ei", "ucb")
_SURE = 1e-9


@dataclass
class Bootstrap:
    """An ensemble; each model learns from rows drawn with replacement.

    Args:
        members: models, that differ at least in their seeds.
        seed: of the rows that are drawn.
    """

    members: Sequence[CostModel]
    seed: int = 0

    def decisive(self, rows: Sequence[int]) -> int | None:
        """Tell at which of these numbers of rows its members choose last; each has as many as it."""
        first = self.members[0]
        return first.decisive(rows) if isinstance(first, Decides) else None

    def fit(self, data: Dataset) -> None:
        """Learn, in place of what was learnt before."""
        for number, member in enumerate(self.members):
            # The number of rows is part of the seed: a resumed run draws as the first one did, and each refit
            # anew.
            random = np.random.default_rng([self.seed, number, len(data.targets)])
            member.fit(data.rows(random.integers(len(data.targets), size=len(data.targets))))

    def predict(self, features: Floats) -> Prediction:
        """Expect the mean of what the members expect, with its deviation."""
        each = np.stack([member.predict(features).mean for member in self.members])
        return Prediction(each.mean(axis=0), each.std(axis=0))


def acquire(name: str, prediction: Prediction, best: float, bound: float) -> Floats:
    """Score candidates by what is expected of measuring them; less is better.

    Args:
        name: "mean", "ei" (expected improvement) or "ucb" (confidence bound).
        prediction: of one target; with its deviation, unless by the mean.
        best: what is expected of the best one that was measured.
        bound: how many deviations the confidence bound is away.
    """
    mean = prediction.mean[:, 0]
    if name == "mean" or prediction.deviation is None:
        return mean
    deviation = prediction.deviation[:, 0]
    if name == "ucb":
        return (mean - bound * deviation).astype(np.float32)
    # Expected improvement for a normal distribution; where the members agree, the bound keeps it finite.
    gap = (best - mean) / np.maximum(deviation, _SURE)
    erf: Callable[[float], float] = math.erf
    below = 0.5 * (1 + np.array([erf(x / math.sqrt(2)) for x in gap.tolist()]))
    density = np.exp(-(gap**2) / 2) / math.sqrt(2 * math.pi)
    # Negative, since less is better for whoever ranks.
    return (-deviation * (gap * below + density)).astype(np.float32)
