"""Leaving out of finalists the steps that change no objective beyond the noise."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planish.core import Candidate, CanName, CanSelect, CanShrink, Objective, Space
from planish.search import shrink
from planish.tuning.final.outcome import SearchOutcome
from planish.tuning.final.paired import OutOfTimeError, PairedMeasurement, Values, open_bench, times_worse

_ROUNDS = 3
_CLEARLY = 3
"""A first look is believed where it shows so many times the noise."""

_LATE = "not minimised to the end: the time for it was over"


@dataclass(frozen=True)
class Minimised:
    """A finalist, minimised.

    Args:
        candidate: what is left.
        searched: what the search found.
        notes: what could not be done.
    """

    candidate: Candidate
    searched: Candidate
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Minimising:
    """What came of minimising.

    Args:
        finalists: no two the same program, and none the baseline.
        noise: objective name to the share by which equals differ; empty where it was not measured.
        notes: what is to be said to the user.
    """

    finalists: Sequence[Minimised]
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()


def minimise_all(search: SearchOutcome, candidates: Sequence[Candidate], end: float) -> Minimising:
    """Minimise candidates by delta debugging.

    First steps go without which the program is the same, if the space knows that. Then candidates are
    measured in turns with the whole one: a step goes where without it no objective is worse, beyond the
    noise where it has some.

    Args:
        search: where its space cannot shrink candidates, they are left as they are.
        candidates: at least one.
        end: when it is over, by the monotonic clock.
    """
    space = search.space()
    if not isinstance(space, CanShrink | CanSelect):
        return Minimising([Minimised(candidate, candidate) for candidate in candidates])
    named = {candidate: _same_program(space, candidate, end) for candidate in candidates}
    if time.monotonic() + search.start_s > end:
        return _distinct(space, search.level.baseline(search.task), _untried(named), {})
    with open_bench(search) as bench:
        found, noise = _measured(search, space, bench, named, end)
    return _distinct(space, search.level.baseline(search.task), found, noise)


def _same_program(space: Space, candidate: Candidate, end: float) -> Candidate:
    """Leave out the steps without which the program is the same, while there is time."""
    if not isinstance(space, CanName) or not isinstance(space, CanShrink | CanSelect):
        return candidate
    if time.monotonic() >= end:
        return candidate
    state = space.state(candidate)

    def will_do(shorter: Sequence[Candidate]) -> list[bool] | None:
        if time.monotonic() >= end:
            return None
        return [time.monotonic() < end and space.state(each) == state for each in shorter]

    return shrink(space, candidate, will_do)


def _measured(
    search: SearchOutcome,
    space: CanShrink | CanSelect,
    bench: PairedMeasurement,
    named: Mapping[Candidate, Candidate],
    end: float,
) -> tuple[list[Minimised], Mapping[str, float]]:
    """Minimise by measuring; each candidate has its share of the time that is left."""
    objectives = search.task.objectives
    bench.end = end
    try:
        noise = bench.noise(search.level.baseline(search.task), list(named.values()), objectives)
    except OutOfTimeError:
        return _untried(named), {}
    found: list[Minimised] = []
    for place, (whole, short) in enumerate(named.items()):
        bench.end = time.monotonic() + (end - time.monotonic()) / (len(named) - place)
        trying = _Trying(bench, objectives, noise, short)
        left = shrink(space, short, trying)
        found.append(Minimised(left, whole, (_LATE,) if trying.late else ()))
    return found, noise


def _untried(named: Mapping[Candidate, Candidate]) -> list[Minimised]:
    return [Minimised(short, whole, (_LATE,)) for whole, short in named.items()]


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
        likely = [c for c in candidates if self._is_no_worse(found[c], found[self.whole], _CLEARLY)]
        if likely:
            again = [self.whole, *likely]
            for candidate, values in zip(again, self.bench.measure(again, _ROUNDS - 1), strict=True):
                found[candidate] += values
        return [c in likely and self._is_no_worse(found[c], found[self.whole], 1) for c in candidates]

    def _is_no_worse(self, values: Sequence[Values], whole: Sequence[Values], times: float) -> bool:
        return all(
            times_worse(objective, values, whole) <= 1 + times * self.noise[objective.name]
            for objective in self.objectives
        )


def _distinct(
    space: Space, baseline: Candidate, found: Sequence[Minimised], noise: Mapping[str, float]
) -> Minimising:
    """Keep one of each program; those of which nothing is left are the baseline."""

    def name(candidate: Candidate) -> str:
        return space.state(candidate) if isinstance(space, CanName) else candidate.hash

    # A baseline need not be of the space.
    bases = {baseline.hash, *([name(baseline)] if baseline == space.start() else [])}
    # Reversed, so that of one program the first stays.
    by_name = {name(each.candidate): each for each in reversed(found)}
    left = [by_name[key] for key in dict.fromkeys(name(each.candidate) for each in found)]
    kept = [each for each in left if not {each.candidate.hash, name(each.candidate)} & bases]
    notes = [_told(len(found) - len(left), "the same as another")]
    notes.append(_told(len(left) - len(kept), "no different from the baseline"))
    # Where nobody is left, the first one shows it.
    shown = kept or [Minimised(found[0].searched, found[0].searched)]
    return Minimising(shown, noise, tuple(filter(None, notes)))


def _told(count: int, what: str) -> str:
    return f"{count} of the front: {what}, once minimised" if count else ""
