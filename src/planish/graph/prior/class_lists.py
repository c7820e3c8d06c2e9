"""The list that each class begins with, by what trials on other models of the class have shown."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from planish.core import Candidate, Step
from planish.graph.passes import Disable, Offline, Rewrite, selection
from planish.graph.prior.ridge import RidgeRow, StepEffect, effects, logarithm

MARGIN = 0.01
"""The least gain for which a step is taken into a list, in the logarithm of the cost."""
LONGEST = 8
"""Rewriting passes of the longest list."""
RANKED = 10
"""Lists that are kept of each class."""
MIXED = "+"


@dataclass(frozen=True)
class ClassList:
    """What is known of a class of networks on one target.

    Args:
        name: of the class; of a mixture, the classes joined by "+".
        models: how many models of it were tried.
        trials: on all of them.
        effects: step to what it does, the greatest gain first.
        ranked: the lists to begin with, the best first; the first is empty where nothing helps.
        expected: the first one's cost over the baseline's, as far as can be told before it is measured.
    """

    name: str
    models: int
    trials: int
    effects: Mapping[Step, StepEffect]
    ranked: tuple[Candidate, ...]
    expected: float

    @property
    def best(self) -> Candidate:
        """The list to begin with."""
        return self.ranked[0]


def learn_lists(records: Iterable[RidgeRow]) -> Mapping[str, ClassList]:
    """Learn, for each class, which list a new model of it begins with.

    A model that is a mixture counts for the mixture, and for each of its classes.

    Args:
        records: trials of any models, on one target, with one leading objective.

    Returns:
        Class to what is known of it.
    """
    groups: defaultdict[str, list[RidgeRow]] = defaultdict(list)
    for record in records:
        # A set, since the mixture of a single class is that class.
        for name in {_mixture(record.classes), *record.classes}:
            groups[name].append(record)
    return {name: _learnt(name, group) for name, group in sorted(groups.items())}


def learned_list(lists: Mapping[str, ClassList], classes: Sequence[str]) -> ClassList | None:
    """Look up what is known of a network's classes: of the mixture, else of the strongest that is known.

    Args:
        lists: what was learnt.
        classes: the network's, the strongest first.
    """
    wanted = (_mixture(classes), *classes)
    return next((lists[name] for name in wanted if name in lists), None)


def _mixture(classes: Sequence[str]) -> str:
    return MIXED.join(sorted(classes))


def _learnt(name: str, records: Sequence[RidgeRow]) -> ClassList:
    found = effects(records)
    tried = _tried(records)
    promises = _Promises(found, tried)
    candidates = {Candidate(), _composed(found, tried), *tried}
    expected = {candidate: promises.expected(candidate) for candidate in candidates}
    # Rounded, since sums in another order differ in their last digits: then the shorter list is first.
    order = sorted(expected, key=lambda c: (round(expected[c], 6), len(c.steps), c.text))
    ranked = tuple(candidate for candidate in order if math.isfinite(expected[candidate]))[:RANKED]
    models = len({record.program for record in records})
    return ClassList(name, models, len(records), found, ranked, math.exp(expected[ranked[0]]))


def _tried(records: Sequence[RidgeRow]) -> Mapping[Candidate, Mapping[str, float]]:
    """Give what each candidate did on each model, averaged over its trials."""
    found: defaultdict[Candidate, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.ratio:
            found[record.candidate][record.program].append(logarithm(record.ratio))
    return {
        candidate: {program: fmean(changes) for program, changes in by_program.items()}
        for candidate, by_program in found.items()
    }


@dataclass(frozen=True)
class _Promises:
    """What can be expected of candidates on a model that was not measured yet."""

    found: Mapping[Step, StepEffect]
    tried: Mapping[Candidate, Mapping[str, float]]

    @cached_property
    def most(self) -> float:
        """The greatest change of any candidate, over its models: no sum of effects promises more."""
        return min((fmean(changes.values()) for changes in self.tried.values()), default=0.0)

    def expected(self, candidate: Candidate) -> float:
        """Tell a candidate's change.

        What its steps promise, what it did on each model, and one model on which it did nothing, count
        alike: what few have seen is not believed whole.
        """
        known = [self.found[step] for step in dict.fromkeys(candidate.steps) if step in self.found]
        if any(effect.fails for effect in known):
            return math.inf
        # Gains are negative: the greater number is the smaller promise.
        promised = max(sum(effect.change for effect in known), self.most)
        measured = self.tried.get(candidate, {})
        return (promised + sum(measured.values())) / (2 + len(measured))


def _composed(found: Mapping[Step, StepEffect], tried: Mapping[Candidate, Mapping[str, float]]) -> Candidate:
    """Make a list of all steps that help, each rewriting pass where it stood in the lists that were good."""
    helpful = [e.step for e in found.values() if e.change < -MARGIN and not e.fails]
    rewrites = [step.name for step in helpful if isinstance(step, Rewrite)][:LONGEST]
    places = _places(tried)
    out = [step.name for step in helpful if isinstance(step, Disable)]
    # What stood in no good list goes to the middle.
    ordered = sorted(rewrites, key=lambda name: (places.get(name, 0.5), name))
    return selection(ordered, out, offline=Offline() in helpful).candidate


def _places(tried: Mapping[Candidate, Mapping[str, float]]) -> Mapping[str, float]:
    """Tell where in a list each rewriting pass stood on average, from 0 to 1, where the list was a gain."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for candidate, changes in tried.items():
        names = [step.name for step in candidate.steps if isinstance(step, Rewrite)]
        if sum(changes.values()) < 0:
            for place, name in enumerate(names):
                found[name].append(place / max(1, len(names) - 1))
    return {name: sum(places) / len(places) for name, places in found.items()}
