"""AutoTVM's relation features R (section 4 of its paper): as wide for any nest, however many loops it has.

R[t, i, j] is the greatest feature i of the loops whose feature j is below the t-th threshold: for instance
how often data is used again by those loops whose data a cache of that size holds. A loop's features stay
together; TVM sorts each of two features by itself, and so pairs one loop's with another's.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from planish.core import FeatureSchema
from planish.levels.loops.features import FIRST_LOOP, LOOPS, OF_LOOP

BELOW = ("inside", "entries", "bytes", "stride of the loaded")
"""j: the features that are compared with thresholds; all of them are given as log2(1 + x)."""
THRESHOLDS = (1, 3, 5, 8, 11, 14, 17, 20, 24)
"""Logarithms by 2: a few elements, vectors, the caches."""
GREATEST = tuple(name for name in OF_LOOP if name != "tail")
"""i: the features whose maximum is given; 0 where no loop is below the threshold."""

RELATIONS = FeatureSchema(
    "loops/relations",
    1,
    tuple(
        f"{greatest} where {below} < 2^{threshold}"
        for below, threshold, greatest in product(BELOW, THRESHOLDS, GREATEST)
    ),
)


def relations(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Relate the loops of (n, width of `SCHEMA`) features; (n, width of `RELATIONS`)."""
    count = len(features)
    loops = features[:, FIRST_LOOP : FIRST_LOOP + LOOPS * len(OF_LOOP)]
    rows = loops.reshape(count, LOOPS, len(OF_LOOP))
    found = np.empty((count, len(BELOW), len(THRESHOLDS), len(GREATEST)), np.float32)
    values = rows[:, :, [OF_LOOP.index(name) for name in GREATEST]]
    for number, name in enumerate(BELOW):
        above = rows[:, :, OF_LOOP.index(name), None] >= np.array(THRESHOLDS, np.float32)
        for place in range(len(THRESHOLDS)):
            taken = np.where(above[:, :, place, None], np.float32(0), values)
            taken.max(axis=1, out=found[:, number, place])
    return found.reshape(count, RELATIONS.width)
