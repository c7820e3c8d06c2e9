"""Rank correlation of two series."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]


def rank_correlation(predicted: Floats, measured: Floats) -> float:
    """Return Spearman's correlation of two series; 0 where one is constant, or has fewer than 2 values."""
    import numpy as np

    if len(predicted) < 2:
        return 0.0
    first, second = _ranks(predicted), _ranks(measured)
    scale = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / scale if scale else 0.0


def _ranks(values: Floats) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Rank values around 0; equal ones share the mean of their positions."""
    import numpy as np

    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    # Ties share a rank: trees predict the same for many rows, and any order among them would be luck.
    middle = np.cumsum(counts) - (counts + 1) / 2
    return middle[inverse] - (len(values) - 1) / 2
