"""The step and the space of the level: lists of indexes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import comb
from typing import TYPE_CHECKING

from planish.core import Candidate, ScheduleError, Space, Step
from planish_sql.program import SqlProgram

if TYPE_CHECKING:
    from numpy.random import Generator

MOST = 2
"""Indexes of a candidate, and columns of an index."""


@dataclass(frozen=True)
class Index(Step):
    """Add an index.

    Args:
        table: of which table.
        columns: the columns, the first leads.
    """

    table: str
    columns: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The statement that adds it."""
        names = ", ".join(f'"{column}"' for column in self.columns)
        return f'CREATE INDEX "{self.table} by {" ".join(self.columns)}" ON "{self.table}" ({names});'


class IndexSpace(Space):
    """Every set of at most two indexes, each of one column or two; sorted, so each set is one candidate."""

    def __init__(self, program: SqlProgram) -> None:
        self.indexes = [
            Index(table, columns)
            for table, names in program.columns().items()
            for width in range(1, MOST + 1)
            for columns in permutations(names, width)
        ]

    def start(self) -> Candidate:
        """No index."""
        return Candidate()

    def size(self) -> int:
        """Count the candidates."""
        return sum(comb(len(self.indexes), count) for count in range(MOST + 1))

    def candidates(self) -> Iterator[Candidate]:
        """List all candidates, the shortest first."""
        for count in range(MOST + 1):
            yield from map(Candidate, combinations(self.indexes, count))

    def sample(self, rng: Generator) -> Candidate:
        """Draw a number of indexes, then the indexes."""
        count = int(rng.integers(MOST + 1))
        return self._of(rng.choice(len(self.indexes), count, replace=False).tolist())

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Add an index or take one away; a full list loses one first, so that one can be exchanged."""
        there = set(self._places(candidate))
        if len(there) == MOST:
            there.discard(int(rng.choice(sorted(there))))
        return self._of(there ^ {int(rng.integers(len(self.indexes)))})

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Deal the indexes of both out anew."""
        dealt = list({*self._places(a), *self._places(b)})
        rng.shuffle(dealt)
        return self._of(dealt[:MOST]), self._of(dealt[MOST:])

    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate:
        """Keep some of the indexes; none needs another."""
        return Candidate(tuple(candidate.steps[index] for index in indices))

    def check(self, candidate: Candidate) -> None:
        """See that a candidate is of this space.

        Raises:
            ScheduleError: it is not.
        """
        places = self._places(candidate)
        if len(places) > MOST or places != sorted(set(places)):
            raise ScheduleError(f"{candidate}: at most {MOST} indexes, sorted, each once")

    def _places(self, candidate: Candidate) -> list[int]:
        for step in candidate.steps:
            if step not in self.indexes:
                raise ScheduleError(f"there is nothing to index by {step}")
        return [self.indexes.index(step) for step in candidate.steps if isinstance(step, Index)]

    def _of(self, places: Iterable[int]) -> Candidate:
        return Candidate(tuple(self.indexes[place] for place in sorted(places)))
