"""The most promising of a space's samples, told by what was learnt of other programs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from planish.core import Candidate, CanSample, rng
from planish.search.sampling import sample
from planish.search.visited import Visited

if TYPE_CHECKING:
    from planish.models.learner import Prior

POOL, TAKEN = 32, 8
"""Samples that are drawn together, and how many of them are taken: the best predicted."""
IDLE = 4
"""Pools in a row without anything new, after which no other is drawn."""


def promising(space: CanSample, visited: Visited, prior: Prior, seed: int) -> Iterator[Candidate]:
    """Draw a pool of samples, give the most promising of them, the best first, and so on.

    What was proposed before is passed over, and what is given is noted. A pool depends on nothing that was
    measured, so a resumed search draws the same ones.

    Args:
        space: is sampled.
        visited: what was proposed.
        prior: predicts what candidates cost.
        seed: pool p is drawn with `rng(seed, 0, p)`.
    """
    idle = 0
    for number in count():
        generator = rng(seed, 0, number)
        drawn = [*dict.fromkeys(each for _ in range(POOL) if (each := sample(space, generator)))]
        if not drawn or idle == IDLE:
            return
        # Stable, so that of equals the one that was drawn first comes first.
        best = prior.score(drawn).argsort(kind="stable")[:TAKEN].tolist()
        new = 0
        for place in best:
            if visited.add(drawn[place]):
                new += 1
                yield drawn[place]
        idle = 0 if new else idle + 1
