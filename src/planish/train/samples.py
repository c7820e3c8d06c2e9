"""Samples that networks are trained on: states and what actions cost, programs and what lists save, texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from planish.core import CanObserve, FeatureSchema
from planish.models.provenance import Stated, Value

GAIN = 0.1
"""The unit of gains that networks predict, as a share of what the baseline costs."""
STEPS = 10
"""Actions of an episode (thesis 3.6.2)."""
SHARPNESS = 0.01
"""Share of the best speed: a continuation that is worse by it is e times less probable."""
FARTHEST = 0.25
"""Largest distance from the best action: what is worse by more counts as worse by this, and is not taken."""
HELD = 10
"""Every tenth program, by the hash of its text, is held back: to decide when to stop, and to compare."""
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class StateDataset:
    """Data set of a network: a row for each state.

    Args:
        observed: (states, rows, columns), as the space observes them.
        left: (states,), the share of steps that are left.
        short: (states, actions + 1), by how much what an action leads to, or at last the state itself, is
            slower than the program's best, as a share of that; NaN where that is unknown. What is
            worse than the state's best action by more than `FARTHEST` is so by that; the end is not.
        groups: (states,), the index of its program in `programs`.
        programs: canonical texts.
        space: of one of the programs.
        conditions: of all of them.
    """

    observed: NDArray[np.int64]
    left: Floats
    short: Floats
    groups: NDArray[np.int64]
    programs: Sequence[str]
    space: CanObserve
    conditions: Stated = field(default_factory=dict[str, Sequence[Value]])

    @property
    def held(self) -> NDArray[np.bool_]:
        """Return which rows are of programs that are held back; none where nothing else would be left."""
        chosen = np.array([hash_number(text) % HELD == 0 for text in self.programs], bool)
        return (chosen & (not chosen.all()))[self.groups]

    def rows(self, chosen: NDArray[np.bool_]) -> StateDataset:
        """Return some of the rows."""
        parts = self.observed[chosen], self.left[chosen], self.short[chosen], self.groups[chosen]
        return StateDataset(*parts, self.programs, self.space, self.conditions)


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
        improvable: whether it has a list that is better than the baseline, on a function that has one.
    """

    tokens: NDArray[np.integer]
    begin: int
    improvable: bool = False


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
        whole.update(one.tokens.astype(np.int32).tobytes() + b"%d;" % one.begin)
    return whole.hexdigest()
