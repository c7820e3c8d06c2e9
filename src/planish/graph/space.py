"""The space of selections: ordered rewriting passes, and the set of what ONNX Runtime leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from planish.core import Candidate, Step
from planish.graph.passes import Disable, Offline, Rewrite, Selection, selection_of

if TYPE_CHECKING:
    from numpy.random import Generator

LONGEST = 8
"""Rewriting passes of the longest list."""

_MORE = 0.3
"""The chance that a sample has no further rewriting pass; so it has some two."""

_OUT = 0.5
"""The chance that a sample leaves out another one of the runtime's passes; so it mostly leaves out one."""


@dataclass(frozen=True)
class Letters:
    """What selections are made of.

    Args:
        rewrites: rewriting passes.
        disables: passes of the runtime that may be left out.
        offline: whether the runtime's work may be kept as a file.
    """

    rewrites: tuple[str, ...]
    disables: tuple[str, ...]
    offline: bool = False


class SelectionSpace:
    """Selections of graph passes; every one is legal.

    Args:
        letters: makes what selections are made of; it is called when something is drawn first, since to
            find out which passes matter takes time.
        name: names the model that some rewriting passes make: equal names mean equal models. It takes the
            passes' time; None: lists name themselves, and an evaluator tells which models are equal.
        seeds: selections that are known to be good for models like this one, the best first.
        longest: rewriting passes of the longest list.
    """

    def __init__(
        self,
        letters: Callable[[], Letters],
        name: Callable[[tuple[str, ...]], str] | None = None,
        seeds: Sequence[Selection] = (),
        longest: int = LONGEST,
    ) -> None:
        self._make_letters = letters
        self._name = name
        self._seeds = tuple(dict.fromkeys(seed.candidate for seed in seeds))
        self._longest = longest

    @cached_property
    def letters(self) -> Letters:
        """What selections are made of."""
        return self._make_letters()

    def start(self) -> Candidate:
        """Give the file as it came, under the runtime's defaults."""
        return Candidate()

    def seeds(self) -> Sequence[Candidate]:
        """List what is known to be good for models like this one, the best first."""
        return self._seeds

    def state(self, candidate: Candidate) -> str:
        """Name the rewritten model and how the runtime loads it, where the space names models; else the list.

        Seeds are named without rewriting them: the first is measured the sooner.
        """
        if self._name is None or candidate in self._seeds:
            return candidate.hash
        chosen = selection_of(candidate)
        rest = replace(chosen, rewrites=()).candidate.hash
        return f"{self._name(chosen.rewrites)}:{rest}"

    def steps(self, candidate: Candidate) -> Sequence[Step]:
        """List every pass that can be added or left out."""
        chosen, letters = selection_of(candidate), self.letters
        more = letters.rewrites if len(chosen.rewrites) < self._longest else ()
        out = [name for name in letters.disables if name not in chosen.disabled]
        offline = [Offline()] if letters.offline and not chosen.offline else []
        return [*map(Rewrite, more), *map(Disable, out), *offline]

    def extend(self, candidate: Candidate, step: Step) -> Candidate:
        """Append a rewriting pass to the others, or leave out one more of the runtime's."""
        chosen = selection_of(candidate)
        match step:
            case Rewrite(name):
                return replace(chosen, rewrites=(*chosen.rewrites, name)).candidate
            case Disable(name):
                return replace(chosen, disabled=chosen.disabled | {name}).candidate
            case _:
                return replace(chosen, offline=True).candidate

    def sample(self, rng: Generator) -> Candidate:
        """Draw a length, the longer the rarer, the passes, and what is left out: mostly one or two."""
        letters = self.letters
        count = min(int(rng.geometric(_MORE)) - 1, self._longest) if letters.rewrites else 0
        out = min(int(rng.geometric(_OUT)), len(letters.disables))
        return Selection(
            tuple(_drawn(letters.rewrites, count, rng)),
            frozenset(rng.choice(letters.disables, out, replace=False).tolist() if out else ()),
            letters.offline and bool(rng.random() < _OUT),
        ).candidate

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Insert, replace, delete or swap a rewriting pass, or change what the runtime does: each alike."""
        chosen, letters = selection_of(candidate), self.letters
        changes: list[Callable[[], Selection]] = []
        if letters.rewrites and len(chosen.rewrites) < self._longest:
            changes.append(lambda: _inserted(chosen, letters, rng))
        if letters.rewrites and chosen.rewrites:
            changes += [lambda: _replaced(chosen, letters, rng), lambda: _deleted(chosen, rng)]
        if len(set(chosen.rewrites)) > 1:
            changes.append(lambda: _swapped(chosen, rng))
        if letters.disables:
            changes += [lambda: _toggled(chosen, letters, rng)] * 2
        if letters.offline:
            changes.append(lambda: replace(chosen, offline=not chosen.offline))
        return changes[int(rng.integers(len(changes)))]().candidate if changes else candidate

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Cut each list at a point and swap the rests; deal out what only one of them leaves out."""
        one, other = selection_of(a), selection_of(b)
        cut, away = (int(rng.integers(len(each.rewrites) + 1)) for each in (one, other))
        both = one.disabled & other.disabled
        dealt = {name for name in sorted(one.disabled ^ other.disabled) if rng.random() < _OUT}
        rest = (one.disabled ^ other.disabled) - dealt
        first = one.rewrites[:cut] + other.rewrites[away:]
        second = other.rewrites[:away] + one.rewrites[cut:]
        return (
            Selection(first[: self._longest], both | dealt, one.offline).candidate,
            Selection(second[: self._longest], both | rest, other.offline).candidate,
        )

    def shorter(self, candidate: Candidate) -> Sequence[Candidate]:
        """Leave out each of the steps in turn."""
        steps = candidate.steps
        return [Candidate(steps[:place] + steps[place + 1 :]) for place in range(len(steps))]


def _drawn(names: Sequence[str], count: int, rng: Generator) -> list[str]:
    return [names[int(place)] for place in rng.integers(len(names), size=count)] if count else []


def _inserted(chosen: Selection, letters: Letters, rng: Generator) -> Selection:
    place, names = int(rng.integers(len(chosen.rewrites) + 1)), chosen.rewrites
    new = _drawn(letters.rewrites, 1, rng)
    return replace(chosen, rewrites=(*names[:place], *new, *names[place:]))


def _replaced(chosen: Selection, letters: Letters, rng: Generator) -> Selection:
    place, names = int(rng.integers(len(chosen.rewrites))), chosen.rewrites
    new = _drawn(letters.rewrites, 1, rng)
    return replace(chosen, rewrites=(*names[:place], *new, *names[place + 1 :]))


def _deleted(chosen: Selection, rng: Generator) -> Selection:
    place, names = int(rng.integers(len(chosen.rewrites))), chosen.rewrites
    return replace(chosen, rewrites=(*names[:place], *names[place + 1 :]))


def _swapped(chosen: Selection, rng: Generator) -> Selection:
    names = list(chosen.rewrites)
    here, there = rng.integers(len(names), size=2).tolist()
    names[here], names[there] = names[there], names[here]
    return replace(chosen, rewrites=tuple(names))


def _toggled(chosen: Selection, letters: Letters, rng: Generator) -> Selection:
    return replace(chosen, disabled=chosen.disabled ^ {*_drawn(letters.disables, 1, rng)})
