"""Messy one-point crossover of patches (GEVO-ML, section 4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planish.core import Candidate

if TYPE_CHECKING:
    from numpy.random import Generator


def children(a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
    """Join two patches, shuffle the edits, and cut the list in two; the children may be illegal.

    As in GEVO, and not in the paper, edits that both have stay in both, where they were in the first.
    """
    common = tuple(step for step in a.steps if step in b.steps)
    rest = [step for patch in (a, b) for step in patch.steps if step not in common]
    order = [rest[int(i)] for i in rng.permutation(len(rest))]
    cut = int(rng.integers(len(order) + 1))
    return Candidate((*common, *order[:cut])), Candidate((*common, *order[cut:]))
