"""How far from 1 chance alone moves the ratio of a quantity to itself."""

from __future__ import annotations

from collections.abc import Sequence

from planish.core import rng

_DRAWS = 2000
_TAIL = 0.025


def noise(values: Sequence[float], seed: int) -> float:
    """Estimate by the bootstrap how far from 1 chance alone moves the ratio of a quantity to itself.

    Args:
        values: of the same thing, in the order measured, with others between them; at least 3, not negative.
        seed: of the bootstrap.

    Returns:
        The farther end of the 95 % interval of the median of each value's ratio to the one before.
    """
    import numpy as np

    # Neighbours, since slow drift of the machine is no noise of a paired comparison.
    later, before = np.asarray(values[1:], float), np.asarray(values[:-1], float)
    with np.errstate(divide="ignore"):
        # Two zeros are equal; anything else over zero is infinitely worse.
        over = np.divide(later, before, out=np.ones_like(later), where=(later != 0) | (before != 0))
    # Of the median, as verdicts are: single ratios are far noisier than what is decided by.
    medians = np.median(over[rng(seed).integers(len(over), size=(_DRAWS, len(over)))], axis=1)
    # An order statistic, not an interpolation: the ratio may be infinite.
    low, high = np.quantile(medians, [_TAIL, 1 - _TAIL], method="inverted_cdf")
    return float(max(high - 1, 1 - low))
