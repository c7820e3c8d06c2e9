"""Leaving out the steps of finalists that do nothing, where a level can tell that without measuring."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from planish.core import Candidate, CanIdentify, CanSelect, CanShrink
from planish.search import WillDo, shrink
from planish.tuning.final.minimising import Minimised
from planish.tuning.final.outcome import SearchOutcome


def without_idle(
    search: SearchOutcome, level: CanIdentify, candidates: Sequence[Candidate], end: float
) -> list[Minimised]:
    """Leave out of candidates the steps without which they make the same, while there is time.

    Args:
        search: where candidates of its space cannot be shortened, they stay as they are.
        level: the search's.
        candidates: the best first.
        end: when it is over, by the monotonic clock.

    Returns:
        No two that are left with the same steps.
    """
    space = search.space()
    if not isinstance(space, CanShrink | CanSelect):
        return [Minimised(candidate, candidate) for candidate in candidates]
    with level.identities(search.task) as name:
        found = [Minimised(shrink(space, each, _same_as(each, name, end)), each) for each in candidates]
    return list({each.candidate: each for each in reversed(found)}.values())[::-1]


def _same_as(whole: Candidate, name: Callable[[Candidate], str], end: float) -> WillDo:
    """Tell which of some shorter candidates make what the whole one makes, while there is time."""

    def will_do(shorter: Sequence[Candidate]) -> list[bool] | None:
        if time.monotonic() >= end:
            return None
        return [time.monotonic() < end and name(each) == name(whole) for each in shorter]

    return will_do
