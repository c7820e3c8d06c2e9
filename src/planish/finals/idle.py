"""Leaving out the steps of finalists that do nothing, where a level can tell that without measuring."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from planish.core import Candidate, CanIdentify, CanSelect, CanShrink
from planish.finals.bench import OutOfTimeError
from planish.finals.minimising import Minimised
from planish.finals.searched import Searched
from planish.search import shrink

SHARE = 0.5
"""Of the seconds that were searched, so many are spent on this at most; but `LEAST_S` always."""
LEAST_S = 20.0


def without_idle(search: Searched, level: CanIdentify, candidates: Sequence[Candidate]) -> list[Minimised]:
    """Leave out of candidates the steps without which they make the same, while there is time.

    Args:
        search: where candidates of its space cannot be shortened, they stay as they are.
        level: the search's.
        candidates: the best first.

    Returns:
        No two that are left with the same steps.
    """
    space = search.space()
    if not isinstance(space, CanShrink | CanSelect):
        return [Minimised(candidate, candidate) for candidate in candidates]
    end = time.monotonic() + max(LEAST_S, SHARE * search.wall_s)
    with level.identities(search.task) as name:
        found = [Minimised(_shrunk(space, name, each, end), each) for each in candidates]
    return list({each.candidate: each for each in reversed(found)}.values())[::-1]


def _shrunk(
    space: CanShrink | CanSelect, name: Callable[[Candidate], str], candidate: Candidate, end: float
) -> Candidate:
    trying = _Trying(name, candidate, end)
    try:
        return shrink(space, candidate, trying)
    except OutOfTimeError:
        return trying.least


@dataclass
class _Trying:
    """Tells which of some shorter candidates make what the whole one makes.

    Attributes:
        least: the shortest one so far that does.
    """

    name: Callable[[Candidate], str]
    whole: Candidate
    end: float
    least: Candidate = field(init=False)

    def __post_init__(self) -> None:
        self.least = self.whole

    def __call__(self, candidates: Sequence[Candidate]) -> list[bool]:
        return [self._is_same(candidate) for candidate in candidates]

    def _is_same(self, candidate: Candidate) -> bool:
        if time.monotonic() > self.end:
            raise OutOfTimeError
        same = self.name(candidate) == self.name(self.whole)
        if same and len(candidate.steps) < len(self.least.steps):
            self.least = candidate
        return same
