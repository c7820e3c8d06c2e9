"""What each step of a finalist does alone, and what two or three do together (GEVO-ML, section 6.1)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from planish.core import Candidate, CanShrink, Effect, Measured, Objective, Outcome, Task
from planish.measure import deadline
from planish.results.comparison import Compared, Finalist
from planish.tuning.final.final_state import FinalState
from planish.tuning.final.paired import (
    OutOfTimeError,
    PairedMeasurement,
    known_rounds,
    open_bench,
)
from planish.tuning.final.search_outcome import SearchOutcome

MOST_STEPS = 6
"""Of longer candidates nothing is measured: there would be too many pairs."""
_ROUNDS = 3

_AT_ONCE = 4

Steps = tuple[int, ...]
Known = dict[Candidate, Mapping[str, float] | str]
"""Candidate to its values beside the baseline's, or why there are none."""


def ablate(search: SearchOutcome, state: FinalState, end: float) -> FinalState:
    """Measure the effect of each step of each finalist, of each pair, then of triples, until the deadline.

    The triples are those of which two pairs or more do something else than their steps make together.
    What a whole finalist does is known from the comparison, so nothing is measured of those with one step.
    """
    del end
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
        alone = {c: _effects(c, _all(c, 1), space, meter) for c in (each.candidate for each in few)}
        pairs = {
            c: _joined(singles, _effects(c, _all(c, 2), space, meter), state, task)
            for c, singles in alone.items()
        }
        triples = {
            c: _joined(alone[c], _effects(c, suggested(joined), space, meter), state, task)
            for c, joined in pairs.items()
        }
    told = tuple(
        replace(each, alone=alone[c], pairs=pairs[c], triples=triples[c])
        if (c := each.candidate) in alone
        else each
        for each in state.finalists
    )
    late = "not all effects of single steps and of pairs are known: no time left"
    return replace(state, finalists=told).noted(late if meter.late else "")


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
    """Give ratios to the baseline, or differences from it where measuring is exact; or why there are none."""
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
    """Give what the comparison found, as `_beside` does."""
    found: dict[str, float] = {}
    for name, measured in finalist.measured.items():
        if measured.objective.exact:
            found[name] = measured.median - baseline.measured[name].median
        else:
            found[name] = measured.ratio.value
    return found


def _all(candidate: Candidate, count: int) -> Sequence[Steps]:
    return list(combinations(range(len(candidate.steps)), count))


def suggested(pairs: Sequence[Effect]) -> Sequence[Steps]:
    """List the triples of which two pairs or more do something else than their steps make together."""
    odd = {pair.steps for pair in pairs if False in pair.additive.values()}
    steps = sorted({step for pair in odd for step in pair})
    return [each for each in combinations(steps, 3) if len(odd.intersection(combinations(each, 2))) > 1]


def _effects(
    candidate: Candidate, sets: Sequence[Steps], space: CanShrink, meter: _Meter
) -> tuple[Effect, ...]:
    """Give the effects of some steps each; those that there was no time for are left out."""
    chosen = {steps: space.selected(candidate, steps) for steps in sets}
    meter.measure(c for c in chosen.values() if c is not None)
    return tuple(
        _effect(steps, only, meter.known)
        for steps, only in chosen.items()
        if only is None or only in meter.known
    )


def _effect(steps: Steps, chosen: Candidate | None, known: Known) -> Effect:
    if chosen is None:
        return Effect(steps, why="not legal without the others")
    found = known[chosen]
    return Effect(steps, why=found) if isinstance(found, str) else Effect(steps, found)


def _joined(
    singles: Sequence[Effect], sets: Sequence[Effect], state: FinalState, task: Task
) -> tuple[Effect, ...]:
    """Tell of each pair or triple whether its steps do together what each does alone, one after the other."""
    alone = {effect.steps[0]: effect.values for effect in singles}

    def additive(joined: Effect) -> Mapping[str, bool]:
        parts = [alone.get(step, {}) for step in joined.steps]
        # Steps that are illegal or fail alone have no values, so nothing can be said of their sum.
        known = [o for o in task.objectives if all(o.name in values for values in (*parts, joined.values))]
        return {o.name: is_additive(o, joined.values, parts, state.noise_of(o)) for o in known}

    return tuple(replace(joined, additive=additive(joined)) for joined in sets)


def is_additive(
    objective: Objective, together: Mapping[str, float], parts: Sequence[Mapping[str, float]], noise: float
) -> bool:
    """Tell whether steps do together what each does alone, one after the other.

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
