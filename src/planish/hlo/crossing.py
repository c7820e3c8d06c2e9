"""Messy one-point crossover of patches (GEVO-ML, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from planish.core import Candidate, Step
from planish.hlo.edits import Edit

if TYPE_CHECKING:
    from numpy.random import Generator


def children(a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
    """Join two patches, shuffle the edits, and cut the list in two; the children may be illegal.

    Unlike in the paper, edits that both have stay in both, as in GEVO; and an edit of what another one makes
    comes after that one, so that more of the children are legal.
    """
    common = tuple(step for step in a.steps if step in b.steps)
    # One list of both, shuffled: messy, in the paper's word, since children may be of any length.
    rest = [step for patch in (a, b) for step in patch.steps if step not in common]
    order = [rest[int(i)] for i in rng.permutation(len(rest))]
    cut = int(rng.integers(len(order) + 1))
    return _candidate((*common, *order[:cut])), _candidate((*common, *order[cut:]))


def _candidate(steps: Iterable[Step]) -> Candidate:
    """Make a patch of edits, each moved behind those that it needs and that are there."""
    waiting, placed = list(steps), list[Step]()
    while waiting:
        marks = [step.mark for step in waiting if isinstance(step, Edit)]
        # An edit never names itself, and never one that names it: the ids come from what it holds.
        ready = next(step for step in waiting if not any(mark in str(step) for mark in marks))
        waiting.remove(ready)
        placed.append(ready)
    return Candidate(tuple(placed))
