"""Leaving out the steps of finalists that do nothing, where a level can tell that without measuring."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from planish.core import Candidate, CanIdentify, CanShrink, Identity
from planish.results.comparison import Finalist
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.search_outcome import SearchOutcome

_LATE = "steps that do nothing were not all removed: no time left"


def prune(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Leave out of finalists the steps without which they make the same, while there is time.

    Where candidates of the space cannot be shortened, they stay as they are. No two are left with the same
    steps.

    Args:
        search: its level can identify what candidates make.
        state: with finalists, the best first.
        end: when it is over, by the monotonic clock.
    """
    space, level = search.space(), search.level
    if not isinstance(space, CanShrink) or not isinstance(level, CanIdentify):
        return state
    with level.identities(search.task) as name:
        pruning = _Pruning(space, name, end)
        left = [replace(each, candidate=pruning.pruned(each.candidate)) for each in state.finalists]
    distinct: dict[Candidate, Finalist] = {}
    for each in left:
        distinct.setdefault(each.candidate, each)
    kept = replace(state, finalists=tuple(distinct.values()))
    return kept.noted(_LATE) if pruning.late else kept


@dataclass
class _Pruning:
    """Shortens candidates.

    Attributes:
        late: whether the time was over before the end.
    """

    space: CanShrink
    name: Callable[[Candidate], Identity]
    end: float
    late: bool = field(default=False, init=False)

    def pruned(self, candidate: Candidate) -> Candidate:
        """Try to leave out one step after another, from the last to the first, until none can go.

        Not by delta debugging: most steps of a candidate that was searched for are needed, and it would look
        at halves and quarters first, in vain. Here each look may shorten it, however early the time ends.
        """
        place, needed = 0, 0
        while needed < len(candidate.steps):
            if time.monotonic() >= self.end:
                self.late = True
                break
            place = (place or len(candidate.steps)) - 1
            others = [*range(place), *range(place + 1, len(candidate.steps))]
            shorter = self.space.selected(candidate, others)
            if shorter is not None and self._will_do(shorter, candidate):
                candidate, needed = shorter, 0
            else:
                needed += 1
        return candidate

    def _will_do(self, shorter: Candidate, whole: Candidate) -> bool:
        made, wanted = self.name(shorter), self.name(whole)
        if isinstance(made, int) and isinstance(wanted, int):
            return made <= wanted
        return made == wanted
