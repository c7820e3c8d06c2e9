"""Trials as rows to learn from: costs by their logarithm, and failures as what is worse than all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planish.learn.cost.model import Dataset, Floats

FAILED = 0.7
"""A failure counts as twice the greatest cost of its group: the natural logarithm of 2."""


def dataset_of(
    features: Floats, costs: Sequence[float | None], groups: Sequence[int] | None = None
) -> Dataset:
    """Make rows of trials.

    Args:
        features: of the candidates.
        costs: as `Trial.cost` gives them, less is better; None where the candidate failed.
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
