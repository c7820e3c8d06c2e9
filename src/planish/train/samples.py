"""Samples that networks are trained on: rows of instructions with costs, and texts as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from planish.core import FeatureSchema

GAIN = 0.1
"""The unit of gains that networks predict, as a share of what the baseline costs."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ListDataset:
    """Programs, and what each of some lists saves on them.

    Args:
        identities: of programs.
        observed: (programs, rows, columns), as the level's space observes them.
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
        """Return how many programs there are."""
        return len(self.observed)

    def rows(self, chosen: NDArray[np.bool_]) -> ListDataset:
        """Return some of the programs."""
        names = [one for one, mine in zip(self.identities, chosen, strict=True) if mine]
        parts = self.observed[chosen], self.shares[chosen], self.baseline[chosen], self.groups[chosen]
        return ListDataset(names, *parts, self.schema, self.sizes, self.lists)

    def columns(self, lists: Sequence[tuple[str, ...]]) -> ListDataset:
        """Return the programs with some of the lists, in this order."""
        chosen = [self.lists.index(each) for each in lists]
        return replace(self, shares=self.shares[:, chosen], lists=lists)

    def gains(self) -> Floats:
        """Return the marginal saving of each list over those before it."""
        return np.diff(np.maximum.accumulate(self.shares, axis=1), axis=1, prepend=0).astype(np.float32)


def hash_number(text: str) -> int:
    """Return a seed that depends on a text alone: the same in every run."""
    return int(sha256(text.encode()).hexdigest()[:8], 16)


@dataclass(frozen=True)
class Sample:
    """A text that is learnt from.

    Args:
        tokens: of it.
        begin: the first token that is learnt; those before it are the prompt.
    """

    tokens: NDArray[np.int32]
    begin: int


def in_batches(samples: Sequence[Sample], most: int) -> list[list[Sample]]:
    """Batch texts of similar lengths.

    Args:
        samples: texts.
        most: tokens of a batch at most, padding included; at least one text.
    """
    found = list[list[Sample]]()
    for one in sorted(samples, key=lambda each: len(each.tokens)):
        # In order of length, the latest is the longest, and all of a batch are padded to it.
        if not found or (len(found[-1]) + 1) * len(one.tokens) > most:
            found.append([])
        found[-1].append(one)
    return found


def digest_of(samples: Sequence[Sample], held: Sequence[Sample]) -> str:
    """Return a digest of the training and the validation set."""
    whole = sha256()
    for one in (*samples, *held):
        whole.update(one.tokens.tobytes() + b"%d;" % one.begin)
    return whole.hexdigest()
