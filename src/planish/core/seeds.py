"""Randomness by (seed, index), so that a run resumed is the run uninterrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator


def rng(seed: int, *index: int) -> Generator:
    """Make the generator that belongs to a seed and a place in the run.

    Args:
        seed: the run's seed, not negative.
        index: where in the run: a candidate's index, or several numbers that name the place.
    """
    import numpy as np

    return np.random.default_rng((seed, *index))
