"""Leaving out the steps of finalists that do nothing, where a level can tell that without measuring."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from planish.core import Candidate, CanIdentify, CanShrink
from planish.results.comparison import Finalist
from planish.search import WillDo, shrink
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.search_outcome import SearchOutcome

_LATE = "steps that do nothing are not left out to the end: the time for it was over"


def prune(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Leave out of finalists the steps without which they make the same, while there is time.

    Where candidates of the space cannot be shortened, they stay as they are. No two are left with the same
    steps.

    Args:
        search: its level can identify what candidates make.
        state: with finalists.
        end: when it is over, by the monotonic clock.
    """
    space, level = search.space(), search.level
    if not isinstance(space, CanShrink) or not isinstance(level, CanIdentify):
        return state
    late = list[bool]()
    with level.identities(search.task) as name:
        left = [
            replace(each, candidate=shrink(space, each.candidate, _same_as(each.candidate, name, end, late)))
            for each in state.finalists
        ]
    distinct: dict[Candidate, Finalist] = {}
    for each in left:
        distinct.setdefault(each.candidate, each)
    kept = replace(state, finalists=tuple(distinct.values()))
    return kept.noted(_LATE) if late else kept


def _same_as(whole: Candidate, name: Callable[[Candidate], str], end: float, late: list[bool]) -> WillDo:
    """Tell which of some shorter candidates make what the whole one makes; `late` is told of an early end."""

    def is_over() -> bool:
        over = time.monotonic() >= end
        if over and not late:
            late.append(True)
        return over

    def will_do(shorter: Sequence[Candidate]) -> list[bool] | None:
        return None if is_over() else [not is_over() and name(each) == name(whole) for each in shorter]

    return will_do
