"""Leaving out of finalists the steps that change no objective beyond the noise."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from planish.core import Candidate, CanName, CanShrink, Objective, Outcome, Space
from planish.results.comparison import Finalist
from planish.search import shrink
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.paired import OutOfTimeError, PairedMeasurement, open_bench, times_worse
from planish.tuning.final.search_outcome import SearchOutcome

_ROUNDS = 3
_CLEARLY = 3
"""A first look is believed where it shows so many times the noise."""

_LATE = "not minimised to the end: no time left"


def minimise(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Minimise finalists by delta debugging.

    First steps go without which the program is the same, if the space knows that. Then candidates are
    measured in turns with the whole one: a step goes where without it no objective is worse, beyond the
    noise where it has some.

    Args:
        search: where its space cannot shrink candidates, they are left as they are.
        state: with finalists.
        end: when it is over, by the monotonic clock.

    Returns:
        Finalists of which no two are the same program, and none is the baseline.
    """
    space = search.space()
    if not isinstance(space, CanShrink):
        return state
    named = tuple(
        replace(each, candidate=_same_program(space, each.candidate, end)) for each in state.finalists
    )
    if time.monotonic() + search.start_s > end:
        found, noise = _untried(named), dict[str, float]()
    else:
        with open_bench(search) as bench:
            found, noise = _measured(search, space, bench, named, end)
    return _distinct(space, search.level.baseline(search.task), replace(state, noise=noise), found)


def _same_program(space: Space, candidate: Candidate, end: float) -> Candidate:
    """Leave out the steps without which the program is the same, while there is time."""
    if not isinstance(space, CanName) or not isinstance(space, CanShrink):
        return candidate
    if time.monotonic() >= end:
        return candidate
    state = space.state(candidate)

    def will_do(shorter: Sequence[Candidate]) -> list[bool] | None:
        if time.monotonic() >= end:
            return None
        # Looked at before each: to name a state may take long, and those that were not asked count as needed.
        return [time.monotonic() < end and space.state(each) == state for each in shorter]

    return shrink(space, candidate, will_do)


def _measured(
    search: SearchOutcome,
    space: CanShrink,
    bench: PairedMeasurement,
    named: Sequence[Finalist],
    end: float,
) -> tuple[list[Finalist], Mapping[str, float]]:
    """Minimise by measuring; each candidate has its share of the time that is left."""
    objectives = search.task.objectives
    bench.end = end
    try:
        others = [each.candidate for each in named]
        noise = bench.noise(search.level.baseline(search.task), others, objectives)
    except OutOfTimeError:
        return _untried(named), {}
    found: list[Finalist] = []
    for place, each in enumerate(named):
        bench.end = time.monotonic() + (end - time.monotonic()) / (len(named) - place)
        trying = _Trying(bench, objectives, noise, each.candidate)
        left = shrink(space, each.candidate, trying)
        found.append(replace(each, candidate=left, notes=(_LATE,) if trying.late else ()))
    return found, noise


def _untried(named: Sequence[Finalist]) -> list[Finalist]:
    return [replace(each, notes=(_LATE,)) for each in named]


@dataclass
class _Trying:
    """Tells whether shorter candidates will do in a whole one's place.

    Attributes:
        late: whether the time was over before the end.
    """

    bench: PairedMeasurement
    objectives: Sequence[Objective]
    noise: Mapping[str, float]
    whole: Candidate
    late: bool = field(default=False, init=False)

    def __call__(self, candidates: Sequence[Candidate]) -> list[bool] | None:
        try:
            return self._looked_at(candidates)
        except OutOfTimeError:
            self.late = True
            return None

    def _looked_at(self, candidates: Sequence[Candidate]) -> list[bool]:
        """Look at all once, and twice more at those that are not clearly worse."""
        everybody = [self.whole, *candidates]
        found = dict(zip(everybody, self.bench.measure(everybody), strict=True))
        # Most shorter candidates are clearly worse at one look: more looks are for those in doubt.
        likely = [c for c in candidates if self._is_no_worse(found[c], found[self.whole], _CLEARLY)]
        if likely:
            again = [self.whole, *likely]
            for candidate, outcomes in zip(again, self.bench.measure(again, _ROUNDS - 1), strict=True):
                found[candidate] += outcomes
        return [c in likely and self._is_no_worse(found[c], found[self.whole], 1) for c in candidates]

    def _is_no_worse(self, outcomes: Sequence[Outcome], whole: Sequence[Outcome], times: float) -> bool:
        return all(
            times_worse(objective, outcomes, whole) <= 1 + times * self.noise[objective.name]
            for objective in self.objectives
        )


def _distinct(space: Space, baseline: Candidate, state: FinalState, found: Sequence[Finalist]) -> FinalState:
    """Keep one of each program; those of which nothing is left are the baseline."""

    def name(candidate: Candidate) -> str:
        return space.state(candidate) if isinstance(space, CanName) else candidate.hash

    # A baseline need not be of the space.
    bases = {baseline.hash, *([name(baseline)] if baseline == space.start() else [])}
    # Reversed, so that of one program the first stays.
    by_name = {name(each.candidate): each for each in reversed(found)}
    left = [by_name[key] for key in dict.fromkeys(name(each.candidate) for each in found)]
    kept = [each for each in left if not {each.candidate.hash, name(each.candidate)} & bases]
    # Where nobody is left, the first one shows it.
    shown = replace(state, finalists=tuple(kept) or state.finalists[:1])
    return shown.noted(
        _told(len(found) - len(left), "the same as another"),
        _told(len(left) - len(kept), "no different from the baseline"),
    )


def _told(count: int, what: str) -> str:
    return f"{count} of the front: {what}, once minimised" if count else ""
