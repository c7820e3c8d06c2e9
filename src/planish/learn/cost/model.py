"""What a cost model is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Dataset:
    """What a cost model learns from.

    Args:
        features: (n, width).
        targets: (n, outputs), what is to be predicted.
        groups: (n,), whole numbers; only rows of one group are compared with each other where a model learns
            their order alone. None where all are of one.
    """

    features: Floats
    targets: Floats
    groups: NDArray[np.intp] | None = None

    def rows(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Dataset:
        """Give some of the rows."""
        groups = None if self.groups is None else self.groups[chosen]
        return Dataset(self.features[chosen], self.targets[chosen], groups)


@dataclass(frozen=True)
class Prediction:
    """What a cost model expects.

    Args:
        mean: (n, outputs).
        deviation: of the same shape; None where the model does not know how sure it is.
    """

    mean: Floats
    deviation: Floats | None = None


class Predicts(Protocol):
    """Predicts from features, without measuring."""

    def predict(self, features: Floats) -> Prediction:
        """Expect the targets of (n, width) features."""
        ...


class CostModel(Predicts, Protocol):
    """What predicts, and learns."""

    def fit(self, data: Dataset) -> None:
        """Learn, in place of what was learnt before."""
        ...


@runtime_checkable
class Decides(Protocol):
    """A model that does not choose all its settings anew at each fit."""

    def decisive(self, rows: Sequence[int]) -> int | None:
        """Tell at which of these numbers of rows `fit` would choose last, if it met one after the other."""
        ...


class LocalModel(CostModel, Protocol):
    """A model that learns what is to be added to another one, and can be more or less large."""

    @property
    def can_learn(self) -> bool:
        """Whether the library is installed by which it learns."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """How large it may be, as is worth trying; the largest first."""
        ...

    def sized(self, size: int) -> Self:
        """Give one of that size that has learnt nothing."""
        ...

    def first(self, size: int) -> Predicts:
        """Give what was learnt as a smaller model would have it."""
        ...

    def fit(self, data: Dataset, margin: Floats | None = None) -> None:
        """Learn, in place of what was learnt before, what is to be added to a margin, (n,)."""
        ...
