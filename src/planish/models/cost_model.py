"""Cost models: their interface, their training rows, and how well they predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Dataset:
    """Data set of a cost model.

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
        """Return some of the rows."""
        groups = None if self.groups is None else self.groups[chosen]
        return Dataset(self.features[chosen], self.targets[chosen], groups)


@dataclass(frozen=True)
class Prediction:
    """Prediction of a cost model.

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
    """Model that is fitted to costs and predicts them."""

    def fit(self, data: Dataset) -> None:
        """Fit the model to the data, from scratch."""
        ...


@runtime_checkable
class HasFitPoint(Protocol):
    """Model that selects its settings at some fits only."""

    def fit_point(self, rows: Sequence[int]) -> int | None:
        """Return the last of these numbers of rows at which `fit` would select settings; None for no such."""
        ...


class LocalModel(CostModel, Protocol):
    """Model of the residual of another one, of selectable size."""

    @property
    def can_learn(self) -> bool:
        """Return whether the library that fits it is installed."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """Return the sizes to try, the largest first."""
        ...

    def sized(self, size: int) -> Self:
        """Return an unfitted model of that size."""
        ...

    def first(self, size: int) -> Predicts:
        """Return the fitted model truncated to a smaller size."""
        ...

    def fit(self, data: Dataset, margin: Floats | None = None) -> None:
        """Fit the model to the difference from a margin, (n,), from scratch."""
        ...


def top_recall(predicted: Floats, measured: Floats, count: int) -> float:
    """Return the recall of the `count` cheapest rows among the `count` of least predicted cost."""
    count = min(count, len(measured))
    best = set(np.argsort(measured, kind="stable")[:count].tolist())
    return len(best & set(np.argsort(predicted, kind="stable")[:count].tolist())) / count if count else 0.0


FAILED = 0.7
"""A failure counts as twice the greatest cost of its group: the natural logarithm of 2."""


def dataset_of(
    features: Floats, costs: Sequence[float | None], groups: Sequence[int] | None = None
) -> Dataset:
    """Make rows of trials.

    Args:
        features: of the candidates.
        costs: as `Trial.cost` returns them, less is better; None where the candidate failed.
        groups: of each trial a number of its program; None where all are of one.
    """
    values = np.array([np.nan if cost is None else cost for cost in costs], np.float64)
    values[~np.isfinite(values)] = np.nan
    numbers = np.zeros(len(values), np.intp) if groups is None else np.asarray(groups, np.intp)
    targets = np.empty(len(values))
    for number in np.unique(numbers):
        mine = numbers == number
        # Each program by itself: only within one program do costs compare.
        targets[mine] = _targets(values[mine])
    return Dataset(features, targets.astype(np.float32)[:, None], None if groups is None else numbers)


def _targets(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take the logarithm where costs have one sign; those of what is to be raised are negative."""
    known = costs[~np.isnan(costs)]
    if not len(known):
        return np.zeros(len(costs))
    if (known > 0).all():
        costs = np.log(costs)
    elif (known < 0).all():
        costs = -np.log(-costs)
    # From the best of the group on, so that programs of seconds and of microseconds have targets of one size.
    costs = costs - np.nanmin(costs)
    # Worse than all that ran: a search is to stay away from what fails, but not by an amount that would swamp
    # all else.
    return np.where(np.isnan(costs), np.nanmax(costs) + FAILED, costs)
