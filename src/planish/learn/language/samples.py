"""Texts that a language model learns from, as tokens, and batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Sample:
    """A text that is learnt from.

    Args:
        tokens: of it.
        begin: the first place that is learnt; what is before is given, as a prompt is.
    """

    tokens: NDArray[np.int32]
    begin: int


def in_batches(samples: Sequence[Sample], most: int) -> list[list[Sample]]:
    """Put texts of like lengths together.

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
    """Name what is learnt from, and what is held back."""
    whole = sha256()
    for one in (*samples, *held):
        whole.update(one.tokens.tobytes() + b"%d;" % one.begin)
    return whole.hexdigest()
