"""How well a model predicts: by the order of what was measured, for that is what a search needs of it."""

from __future__ import annotations

import numpy as np

from planish.learn.cost.model import Floats


def rank_correlation(predicted: Floats, measured: Floats) -> float:
    """Give Spearman's correlation of two series; 0 where one is constant, or has fewer than 2 values."""
    if len(predicted) < 2:
        return 0.0
    first, second = _ranks(predicted), _ranks(measured)
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / scale if scale else 0.0


def top_recall(predicted: Floats, measured: Floats, count: int) -> float:
    """Tell what share of the `count` rows of least measured cost is among as many of least predicted cost."""
    count = min(count, len(measured))
    best = set(np.argsort(measured, kind="stable")[:count].tolist())
    return len(best & set(np.argsort(predicted, kind="stable")[:count].tolist())) / count if count else 0.0


def _ranks(values: Floats) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Rank values around 0; equal ones share the mean of their places."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    # Ties share a rank: trees predict the same for many rows, and any order among them would be luck.
    middle = np.cumsum(counts) - (counts + 1) / 2
    return middle[place] - (len(values) - 1) / 2
