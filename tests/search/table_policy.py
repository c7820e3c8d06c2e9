"""A policy that is a table, over words of letters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planish.core import Candidate, PolicyState, Space, Step


@dataclass(frozen=True)
class Take(Step):
    """A letter."""

    letter: str


@dataclass(frozen=True)
class At:
    """Where the table stands."""

    candidate: Candidate


class Words(Space):
    """Words of letters; the state is the word, but A and B undo each other."""

    def start(self) -> Candidate:
        return Candidate()

    def state_key(self, candidate: Candidate) -> str:
        return word(candidate).replace("AB", "").replace("BA", "")


def word(candidate: Candidate) -> str:
    return "".join(step.letter for step in candidate.steps if isinstance(step, Take))


@dataclass
class Table:
    """Probabilities of the next letter by the word so far; "." is the end, and no entry is the end too."""

    table: Mapping[str, Mapping[str, float]]
    asked: list[str] = field(default_factory=list[str])

    def begin(self, space: Space) -> At:
        return At(space.start())

    def extend(self, state: PolicyState, step: Step) -> At:
        return At(state.candidate.then(step))

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        return [self._row(word(state.candidate)) for state in states]

    def _row(self, so_far: str) -> Mapping[Step | None, float]:
        self.asked.append(so_far)
        row = self.table.get(so_far, {".": 1.0})
        return {None if letter == "." else Take(letter): math.log(p) for letter, p in row.items()}


TREE = {
    "": {"X": 0.6, "Y": 0.4},
    "X": {"X": 0.5, "Y": 0.3, ".": 0.2},
    "Y": {"X": 0.1, "Y": 0.9},
    "YX": {"Z": 0.75, ".": 0.25},
}
