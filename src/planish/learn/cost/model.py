"""What a cost model is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Dataset:
    """What a cost model learns from.

    Args:
        features: (n, width).
        targets: (n, outputs), what is to be predicted.
    """

    features: Floats
    targets: Floats


@dataclass(frozen=True)
class Prediction:
    """What a cost model expects.

    Args:
        mean: (n, outputs).
        deviation: of the same shape; None where the model does not know how sure it is.
    """

    mean: Floats
    deviation: Floats | None = None


class CostModel(Protocol):
    """Predicts from features, without measuring."""

    def fit(self, data: Dataset) -> None:
        """Learn, in place of what was learnt before."""
        ...

    def predict(self, features: Floats) -> Prediction:
        """Expect the targets of (n, width) features."""
        ...
