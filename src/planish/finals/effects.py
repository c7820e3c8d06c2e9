"""What each step of a finalist does alone, and what each two do together (GEVO-ML, section 6.1)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from planish.core import Candidate, CanSelect, CanShrink, Effect, Objective
from planish.finals.bench import Bench, OutOfTimeError, Values, open_bench
from planish.finals.ending import Ending
from planish.finals.searched import Searched
from planish.result import Ranked
from planish.search import selected

SHARE = 0.25
"""Of the seconds that were searched, so many are spent on effects at most; but `LEAST_S` always."""
LEAST_S = 10.0
MOST_STEPS = 6
"""Of longer candidates nothing is measured: there would be too many pairs."""
_ROUNDS = 3

Steps = tuple[int, ...]
Known = dict[Candidate, Mapping[str, float]]
"""Candidate to its values beside the baseline's; empty where it failed."""


def tell_effects(search: Searched, ending: Ending) -> None:
    """Measure the effect of each step of each finalist, then of each pair, until the time is over."""
    task, level = search.task, search.level
    space = level.space(task, search.settings.space or level.spaces[0])
    few = [place for place, m in enumerate(ending.members) if len(m.candidate.steps) <= MOST_STEPS]
    if not isinstance(space, CanShrink | CanSelect) or not few:
        return
    known: Known = {}
    with open_bench(search) as bench:
        bench.end = time.monotonic() + max(LEAST_S, SHARE * search.wall_s)
        meter = _Meter(bench, level.baseline(task), task.objectives, known)
        try:
            for place in few:
                ending.members[place] = _alone(ending.members[place], space, meter)
            for place in few:
                ending.members[place] = _pairs(ending.members[place], space, meter, ending.noise)
        except OutOfTimeError:
            ending.notes.append("the effects of single edits are not all known: the time for them was over")


class _Meter:
    """Measures candidates beside the baseline, none twice."""

    def __init__(
        self, bench: Bench, baseline: Candidate, objectives: Sequence[Objective], known: Known
    ) -> None:
        self._bench, self._baseline, self._objectives, self._known = bench, baseline, objectives, known

    @property
    def objectives(self) -> Sequence[Objective]:
        """What is measured."""
        return self._objectives

    def __call__(self, candidates: Iterable[Candidate | None]) -> Known:
        """Give the values of candidates, in which ratios and differences are medians over rounds."""
        new = list(dict.fromkeys(c for c in candidates if c is not None and c not in self._known))
        if new:
            base, *found = self._bench.measure([self._baseline, *new], _ROUNDS)
            for candidate, values in zip(new, found, strict=True):
                self._known[candidate] = _beside(values, base, self._objectives)
        return self._known


def _beside(
    values: Sequence[Values], base: Sequence[Values], objectives: Sequence[Objective]
) -> Mapping[str, float]:
    """Give ratios to the baseline, or differences from it where measuring is exact; empty for a failure."""
    pairs = [(v, b) for v, b in zip(values, base, strict=True) if v is not None and b is not None]
    if len(pairs) < len(values):
        return {}
    found: dict[str, float] = {}
    for name, exact in ((objective.name, objective.exact) for objective in objectives):
        if exact:
            found[name] = statistics.median(v[name] - b[name] for v, b in pairs)
        elif all(b[name] for _, b in pairs):
            found[name] = statistics.median(v[name] / b[name] for v, b in pairs)
    return found


def _alone(member: Ranked, space: CanShrink | CanSelect, meter: _Meter) -> Ranked:
    steps = [(place,) for place in range(len(member.candidate.steps))]
    return replace(member, alone=_effects(member.candidate, steps, space, meter))


def _pairs(member: Ranked, space: CanShrink | CanSelect, meter: _Meter, noise: Mapping[str, float]) -> Ranked:
    steps = list(combinations(range(len(member.candidate.steps)), 2))
    pairs = _effects(member.candidate, steps, space, meter)
    alone = {effect.steps[0]: effect.values for effect in member.alone}
    return replace(
        member,
        pairs=tuple(replace(p, additive=_additive(p, alone, meter.objectives, noise)) for p in pairs),
    )


def _effects(
    candidate: Candidate, steps: Sequence[Steps], space: CanShrink | CanSelect, meter: _Meter
) -> tuple[Effect, ...]:
    chosen = {each: selected(space, candidate, each) for each in steps}
    known = meter(chosen.values())
    return tuple(_effect(each, chosen[each], known) for each in steps)


def _effect(steps: Steps, chosen: Candidate | None, known: Known) -> Effect:
    if chosen is None:
        return Effect(steps, why="not legal without the others")
    return Effect(steps, known[chosen], why="" if known[chosen] else "it fails")


def _additive(
    pair: Effect,
    alone: Mapping[int, Mapping[str, float]],
    objectives: Sequence[Objective],
    noise: Mapping[str, float],
) -> Mapping[str, bool]:
    """Tell whether two steps do together what each does alone, one after the other."""
    one, other = (alone.get(step, {}) for step in pair.steps)
    found: dict[str, bool] = {}
    for name, exact in ((objective.name, objective.exact) for objective in objectives):
        if not all(name in values for values in (one, other, pair.values)):
            continue
        if exact:
            found[name] = abs(pair.values[name] - (one[name] + other[name])) < 1e-9
        else:
            found[name] = abs(pair.values[name] / (one[name] * other[name]) - 1) <= noise.get(name, 0.0)
    return found
