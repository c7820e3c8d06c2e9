"""Steps of finalists: those without effect are removed, and the effect of the others is measured.

`prune` asks the level which steps change nothing. `minimize` measures that, with several objectives.
`ablate` measures what each step does alone, and pairs and triples together (GEVO-ML, section 6.1).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from planish.core import (
    Attribution,
    Candidate,
    CanShrink,
    Identify,
    Identity,
    Measured,
    Objective,
    Outcome,
    Space,
    Task,
)
from planish.measure import deadline
from planish.measure.comparison import OutOfTimeError, PairedMeasurement, known_rounds, times_worse
from planish.tuning.comparison import Compared, Finalist
from planish.tuning.final_state import FinalState, SearchOutcome, open_bench

_NOT_PRUNED = "ran out of time while removing redundant steps"


def prune(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Leave out of finalists the steps without which they make the same, while there is time.

    Where candidates of the space cannot be shortened, they stay as they are. No two are left with the same
    steps.

    Args:
        search: its level can identify what candidates make.
        state: with finalists, the best first.
        end: when it is over, by the monotonic clock.
    """
    space = search.space()
    identities = search.level.identities(search.task)
    if not isinstance(space, CanShrink) or identities is None:
        return state
    with identities as name:
        pruned = [_pruned(space, name, end, each.candidate) for each in state.finalists]
    distinct: dict[Candidate, Finalist] = {}
    for each, (candidate, _) in zip(state.finalists, pruned, strict=True):
        distinct.setdefault(candidate, replace(each, candidate=candidate))
    kept = replace(state, finalists=tuple(distinct.values()))
    return kept.noted("" if all(whole for _, whole in pruned) else _NOT_PRUNED)


def _pruned(space: CanShrink, name: Identify, end: float, candidate: Candidate) -> tuple[Candidate, bool]:
    """Leave out one step after another, from the last to the first, until none can go; return whether all
    were tried in time.

    Not by delta debugging: most steps of a candidate that was searched for are needed, and it would look
    at halves and quarters first, in vain. Here each look may shorten it, however early the time ends.
    """
    index, needed = 0, 0
    while needed < len(candidate.steps):
        if time.monotonic() >= end:
            return candidate, False
        index = (index or len(candidate.steps)) - 1
        shorter = space.selected(candidate, [*range(index), *range(index + 1, len(candidate.steps))])
        if shorter is not None and _is_enough(name(shorter), name(candidate)):
            candidate, needed = shorter, 0
        else:
            needed += 1
    return candidate, True


def _is_enough(made: Identity, wanted: Identity) -> bool:
    return made <= wanted if isinstance(made, int) and isinstance(wanted, int) else made == wanted


_ROUNDS = 3
_CLEARLY = 3
"""Multiples of the noise from which on a first look is believed."""

_NOT_MINIMIZED = "not completely minimized: no time left"


def minimize(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Minimize finalists by delta debugging.

    First steps go without which the program is the same, if the space knows that. Then candidates are
    measured interleaved with the whole one: a step goes where without it no objective is worse, beyond the
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
    if time.monotonic() + search.startup_s > end:
        found, noise = _not_minimized(named), dict[str, float]()
    else:
        with open_bench(search) as bench:
            found, noise = _measured(search, space, bench, named, end)
    return _distinct(space, search.level.baseline(search.task), replace(state, noise=noise), found)


def _same_program(space: CanShrink, candidate: Candidate, end: float) -> Candidate:
    """Leave out the steps without which the program is the same, while there is time."""
    if time.monotonic() >= end:
        return candidate
    state = space.state_key(candidate)

    def will_do(shorter: Sequence[Candidate]) -> list[bool] | None:
        if time.monotonic() >= end:
            return None
        # Looked at before each: to name a state may take long, and those that were not asked count as needed.
        return [time.monotonic() < end and space.state_key(each) == state for each in shorter]

    from planish.search.minimization import shrink  # few spaces shorten candidates

    return shrink(space, candidate, will_do)


def _measured(
    search: SearchOutcome, space: CanShrink, bench: PairedMeasurement, named: Sequence[Finalist], end: float
) -> tuple[list[Finalist], Mapping[str, float]]:
    """Minimize by measuring; each candidate has its share of the time that is left."""
    from planish.search.minimization import shrink

    objectives = search.task.objectives
    bench.end = end
    try:
        others = [each.candidate for each in named]
        noise = bench.noise(search.level.baseline(search.task), others, objectives)
    except OutOfTimeError:
        return _not_minimized(named), {}
    found: list[Finalist] = []
    for index, each in enumerate(named):
        bench.end = time.monotonic() + (end - time.monotonic()) / (len(named) - index)
        trying = _Trying(bench, objectives, noise, each.candidate)
        left = shrink(space, each.candidate, trying)
        found.append(replace(each, candidate=left, notes=(_NOT_MINIMIZED,) if trying.late else ()))
    return found, noise


def _not_minimized(named: Sequence[Finalist]) -> list[Finalist]:
    return [replace(each, notes=(_NOT_MINIMIZED,)) for each in named]


@dataclass
class _Trying:
    """Test of whether shorter candidates are as good as a whole one.

    Attributes:
        late: whether the time was over before the end.
    """

    bench: PairedMeasurement
    objectives: Sequence[Objective]
    noise: Mapping[str, float]
    whole: Candidate
    late: bool = field(default=False, init=False)

    def __call__(self, candidates: Sequence[Candidate]) -> list[bool] | None:
        sides = [self.whole, *candidates]
        try:
            found = dict(zip(sides, self.bench.measure(sides), strict=True))
            # Most shorter candidates are clearly worse at one look: two more are for the others.
            likely = [c for c in candidates if self._is_no_worse(found[c], found[self.whole], _CLEARLY)]
            if likely:
                again = [self.whole, *likely]
                for candidate, outcomes in zip(again, self.bench.measure(again, _ROUNDS - 1), strict=True):
                    found[candidate] += outcomes
        except OutOfTimeError:
            self.late = True
            return None
        return [c in likely and self._is_no_worse(found[c], found[self.whole], 1) for c in candidates]

    def _is_no_worse(self, outcomes: Sequence[Outcome], whole: Sequence[Outcome], times: float) -> bool:
        return all(
            times_worse(objective, outcomes, whole) <= 1 + times * self.noise[objective.name]
            for objective in self.objectives
        )


def _distinct(space: Space, baseline: Candidate, state: FinalState, found: Sequence[Finalist]) -> FinalState:
    """Keep one of each program; those of which nothing is left are the baseline."""
    name = space.state_key
    # A baseline need not be of the space.
    bases = {baseline.hash, *([name(baseline)] if baseline == space.start() else [])}
    # Reversed, so that of one program the first stays.
    by_name = {name(each.candidate): each for each in reversed(found)}
    left = [by_name[key] for key in dict.fromkeys(name(each.candidate) for each in found)]
    kept = [each for each in left if not {each.candidate.hash, name(each.candidate)} & bases]
    # Where none is left, the first one shows it.
    shown = replace(state, finalists=tuple(kept) or state.finalists[:1])
    return shown.noted(
        _dropped(len(found) - len(left), "the same as another"),
        _dropped(len(left) - len(kept), "no different from the baseline"),
    )


def _dropped(count: int, what: str) -> str:
    return f"{count} of the front: {what}, once minimized" if count else ""


MOST_STEPS = 6
"""Of longer candidates nothing is measured: there would be too many pairs."""

_AT_ONCE = 4

Steps = tuple[int, ...]
Known = dict[Candidate, Mapping[str, float] | str]
"""Candidate to its values beside the baseline's, or why there are none."""


def ablate(search: SearchOutcome, state: FinalState, _end: float) -> FinalState:
    """Measure the effect of each step of each finalist, of each pair, then of triples, until the deadline.

    The triples are those of which two pairs or more do something else than their steps make together.
    What a whole finalist does is known from the comparison, so nothing is measured of those with one step.
    """
    task, space = search.task, search.space()
    few = [each for each in state.finalists if len(each.candidate.steps) <= MOST_STEPS]
    if not isinstance(space, CanShrink) or not few or state.baseline is None:
        return state
    base = state.baseline
    with open_bench(search) as bench:
        bench.end = deadline()
        known: Known = {each.candidate: _compared_values(each, base) for each in state.finalists}
        meter = _Meter(bench, search.level.baseline(task), task.objectives, known)
        # All single steps before any pair: the time may end, and a pair is judged by what its steps do alone.
        main = {c: _effects(c, _all(c, 1), space, meter) for c in (each.candidate for each in few)}
        pairs = {
            c: _joined(singles, _effects(c, _all(c, 2), space, meter), state, task)
            for c, singles in main.items()
        }
        triples = {
            c: _joined(main[c], _effects(c, suggested(joined), space, meter), state, task)
            for c, joined in pairs.items()
        }
    finalists = tuple(
        replace(each, main_effects=main[c], interactions=pairs[c] + triples[c])
        if (c := each.candidate) in main
        else each
        for each in state.finalists
    )
    late = "ran out of time while measuring the effects of single steps and of pairs"
    return replace(state, finalists=finalists).noted(late if meter.late else "")


@dataclass
class _Meter:
    """Measures candidates beside the baseline, none twice.

    Attributes:
        known: what was measured.
        late: whether the time is over.
    """

    bench: PairedMeasurement
    baseline: Candidate
    objectives: Sequence[Objective]
    known: Known = field(default_factory=Known)
    late: bool = False

    def measure(self, candidates: Iterable[Candidate]) -> None:
        """Measure what is not known yet, a few at once, while there is time."""
        new = [c for c in dict.fromkeys(candidates) if c not in self.known]
        try:
            for first in range(0, len(new), _AT_ONCE):
                some = new[first : first + _AT_ONCE]
                base, *found = self.bench.measure([self.baseline, *some], _ROUNDS)
                for candidate, outcomes in zip(some, found, strict=True):
                    self.known[candidate] = _beside(outcomes, base, self.objectives)
        except OutOfTimeError:
            self.late = True


def _beside(
    outcomes: Sequence[Outcome], base: Sequence[Outcome], objectives: Sequence[Objective]
) -> Mapping[str, float] | str:
    """Return ratios to the baseline, or differences where measuring is exact; or why there are none."""
    known = known_rounds(outcomes, base)
    if not known:
        return "not known: its workers were lost"
    pairs = [(o.values, b.values) for o, b in known if isinstance(o, Measured) and isinstance(b, Measured)]
    if len(pairs) < len(known):
        return "it fails"
    found: dict[str, float] = {}
    for name, exact in ((objective.name, objective.exact) for objective in objectives):
        if exact:
            found[name] = statistics.median(v[name] - b[name] for v, b in pairs)
        elif all(b[name] for _, b in pairs):
            found[name] = statistics.median(v[name] / b[name] for v, b in pairs)
    return found or "a baseline of 0 has no ratio"


def _compared_values(finalist: Finalist, baseline: Compared) -> Mapping[str, float]:
    """Return the result of the comparison, as `_beside` does."""
    return {
        name: each.median - baseline.measured[name].median if each.objective.exact else each.ratio.value
        for name, each in finalist.measured.items()
    }


def _all(candidate: Candidate, count: int) -> Sequence[Steps]:
    return list(combinations(range(len(candidate.steps)), count))


def suggested(pairs: Sequence[Attribution]) -> Sequence[Steps]:
    """List the triples of which two pairs or more do something else than their steps make together."""
    odd = {pair.steps for pair in pairs if False in pair.additive.values()}
    steps = sorted({step for pair in odd for step in pair})
    return [each for each in combinations(steps, 3) if len(odd.intersection(combinations(each, 2))) > 1]


def _effects(
    candidate: Candidate, sets: Sequence[Steps], space: CanShrink, meter: _Meter
) -> tuple[Attribution, ...]:
    """Return the effects of some steps each; those that there was no time for are left out."""
    chosen = {steps: space.selected(candidate, steps) for steps in sets}
    meter.measure(c for c in chosen.values() if c is not None)
    illegal = "not legal without the others"
    known = [
        (steps, illegal if only is None else meter.known[only])
        for steps, only in chosen.items()
        if only is None or only in meter.known
    ]
    return tuple(
        Attribution(steps, why=found) if isinstance(found, str) else Attribution(steps, found)
        for steps, found in known
    )


def _joined(
    singles: Sequence[Attribution], sets: Sequence[Attribution], state: FinalState, task: Task
) -> tuple[Attribution, ...]:
    """Return for each pair or triple whether its steps do together what they do one after the other."""
    alone = {effect.steps[0]: effect.values for effect in singles}

    def additive(joined: Attribution) -> Mapping[str, bool]:
        parts = [alone.get(step, {}) for step in joined.steps]
        # Steps that are illegal or fail alone have no values, so nothing can be said of their sum.
        known = [o for o in task.objectives if all(o.name in values for values in (*parts, joined.values))]
        return {o.name: is_additive(o, joined.values, parts, state.noise_of(o)) for o in known}

    return tuple(replace(joined, additive=additive(joined)) for joined in sets)


def is_additive(
    objective: Objective, together: Mapping[str, float], parts: Sequence[Mapping[str, float]], noise: float
) -> bool:
    """Return whether steps do together what each does alone, one after the other.

    Args:
        objective: by which.
        together: values beside the baseline's: differences where the objective is exact, else ratios.
        parts: the same of each step alone.
        noise: the share by which ratios of equals differ.
    """
    # Differences add up, and ratios multiply.
    name = objective.name
    if objective.exact:
        return math.isclose(together[name], sum(part[name] for part in parts), abs_tol=1e-9)
    product = math.prod(part[name] for part in parts)
    # No quotient: what takes no memory has a ratio of 0.
    return together[name] == product or abs(together[name] - product) <= noise * product < math.inf
