"""What a network that reads instructions learns from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planish.core import FeatureSchema

GAIN = 0.1
"""The unit of gains that the network gives, as a share of what the baseline costs."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Lessons:
    """Programs, and what each of some lists saves on them.

    Args:
        identities: of programs.
        observed: (programs, rows, columns), as the level's space gives it.
        shares: (programs, lists), what each saves over the baseline, as a share of it; not below 0.
        baseline: (programs,), what the baseline costs.
        groups: (programs,), where each is from: packages.
        schema: of what is observed.
        sizes: of columns, how many values there are.
        lists: texts of the steps of each list, in the order in which all are run.
    """

    identities: Sequence[str]
    observed: NDArray[np.int16]
    shares: Floats
    baseline: Floats
    groups: NDArray[np.str_]
    schema: FeatureSchema
    sizes: tuple[int, ...]
    lists: Sequence[tuple[str, ...]]

    def __len__(self) -> int:
        """How many programs there are."""
        return len(self.observed)

    def gains(self) -> Floats:
        """Give what each list saves beside those before it."""
        return np.diff(np.maximum.accumulate(self.shares, axis=1), axis=1, prepend=0).astype(np.float32)
