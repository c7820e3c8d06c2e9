"""Proposals of a searcher: samples and neighbors that are new, and an archive of the best measured ones.

A space may find nothing legal where it looks, and may reach one program in many ways. So candidates are
drawn until one is new, and a space in which a thousand draws repeat counts as used up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from planish.core import Candidate, CanEvolve, CanSample, ScheduleError, Space, rng
from planish.search.rounds import Recall, Rounds, recording

if TYPE_CHECKING:
    from numpy.random import Generator

PATIENCE = 1_000
"""Repeats in a row after which a space counts as used up."""


class Visited:
    """The candidates proposed so far, by the state that they lead to.

    Args:
        space: what they belong to.
        recall: what was proposed before; the index of a proposal is how many were recorded before it.
    """

    def __init__(self, space: Space, recall: Recall | None = None) -> None:
        self._recall = recall or Recall()
        self.name = space.state_key
        self._names: set[str] = set()

    def known(self, candidate: Candidate) -> bool:
        """Return whether a candidate, or another one of the same state, was recorded."""
        return self.name(candidate) in self._names

    def add(self, candidate: Candidate) -> bool:
        """Record a candidate, and return whether it is new."""
        return self._record(self.name(candidate), candidate)

    def all_recalled(self, count: int) -> list[Candidate]:
        """Return the next proposals as an earlier session made them, and record them; or none of them."""
        first = len(self._names)
        # All are looked up before any is recorded: recording one that differs would forget the rest.
        found = [known for index in range(first, first + count) if (known := self._recall.at(index))]
        return [each for each in found if self.add(each)] if len(found) == count else []

    def recalled(self) -> Candidate | None:
        """Return the next proposal as an earlier session made it, and record it; None where it must be
        drawn."""
        known = self._recall.at(len(self._names))
        return known if known is not None and self.add(known) else None

    def make_unique(
        self, candidate: Candidate | None, change: Callable[[Candidate], Candidate | None]
    ) -> Candidate | None:
        """Change a candidate until it is new, and record it.

        A change that leaves its name is not kept: such changes would pile up, and cost more and more.

        Args:
            candidate: to begin with; None where there is none.
            change: returns another; None where there is none.

        Returns:
            The new candidate; None where there is none, or after `PATIENCE` changes that led to no new one.
        """
        if candidate is None:
            return None
        name = self.name(candidate)
        for _ in range(PATIENCE):
            if self._record(name, candidate):
                return candidate
            if (other := change(candidate)) is None:
                return None
            if (other_name := self.name(other)) != name:
                candidate, name = other, other_name
        return None

    def _record(self, name: str, candidate: Candidate) -> bool:
        if name in self._names:
            return False
        # Before it is counted: the index of a proposal is how many were recorded before it.
        self._recall.check(len(self._names), candidate)
        self._names.add(name)
        return True


TRIES = 20
"""Samples in a row in which a space finds nothing legal, after which it counts as used up."""


def sample(space: CanSample, generator: Generator) -> Candidate | None:
    """Draw a candidate; None where the space finds none in `TRIES` draws."""
    for _ in range(TRIES):
        try:
            return space.sample(generator)
        except ScheduleError:
            continue
    return None


def neighbor(space: CanEvolve, candidate: Candidate, generator: Generator) -> Candidate | None:
    """Return a neighbor; where the space finds none, a sample; None where it finds none of these either."""
    try:
        return space.mutate(candidate, generator)
    except ScheduleError:
        return sample(space, generator)


def new_sample(space: CanSample, visited: Visited, generator: Generator) -> Candidate | None:
    """Draw until a candidate is new, and record it; None where the space seems used up."""
    return visited.make_unique(sample(space, generator), lambda _: sample(space, generator))


def new_from(space: CanEvolve, visited: Visited, child: Candidate, generator: Generator) -> Candidate | None:
    """Change a candidate until it is new, and record it; None where the space seems used up."""
    return visited.make_unique(child, lambda candidate: neighbor(space, candidate, generator))


def new_candidates(
    visited: Visited,
    seed: int,
    indices: Iterable[int],
    draw: Callable[[Generator], Candidate | None],
    seeds: Iterable[Candidate] = (),
) -> Iterator[Candidate]:
    """Yield a new candidate for each index, recalled or drawn, until none is new.

    Args:
        visited: what was proposed; `draw` records there.
        seed: the candidate of index i is drawn by `rng(seed, i)`.
        indices: of the candidates.
        draw: returns a new candidate; None where the space seems used up.
        seeds: new candidates that take the first indices.
    """
    known = iter(seeds)
    for index in indices:
        new = next(known, None) or visited.recalled() or draw(rng(seed, index))
        if new is None:
            return
        yield new


def changed(space: CanEvolve, candidate: Candidate, times: int, generator: Generator) -> Candidate:
    """Change a candidate so many times; it stays as it is where the space finds nothing legal at all."""
    for _ in range(times):
        candidate = neighbor(space, candidate, generator) or candidate
    return candidate


class Archive:
    """Candidates with their costs; none is measured twice.

    Equal costs mostly mean equal programs. So of candidates of one cost only the shortest is kept among the
    best (of equally short ones the earliest): else one program's many names would crowd out the others.

    Args:
        space: what the candidates belong to; it decides which of them are the same.
        few: how many of the best are kept, from 1.
        recall: what was proposed before.

    Attributes:
        visited: what was proposed.
    """

    def __init__(self, space: Space, few: int = 1, recall: Recall | None = None) -> None:
        self.visited = Visited(space, recall)
        self._few = few
        self._costs: dict[str, float | None] = {}
        self._best: list[tuple[float, Candidate]] = []

    def cost(self, candidate: Candidate) -> float | None:
        """Return what a candidate cost; None where it failed or was never measured."""
        return self._costs.get(self.visited.name(candidate))

    def best(self) -> Sequence[Candidate]:
        """List the best few, the least cost first; fewer, or none, while no more were measured."""
        return [candidate for _, candidate in self._best]

    def measure_new(self, candidates: Iterable[Candidate]) -> Rounds:
        """Make one round of those candidates that were never proposed."""
        yield from self.measure(filter(self.visited.add, candidates))

    def measure(self, candidates: Iterable[Candidate]) -> Rounds:
        """Make one round of candidates, each of which has just been added to `visited`."""
        asked: list[Candidate] = []
        # A round may be lazy, and the run may end within it: only what was drawn can have a result.
        costs = yield recording(candidates, asked)
        for candidate in asked:
            cost = self._costs[self.visited.name(candidate)] = costs.get(candidate.hash)
            if cost is None:
                continue
            # Exactly equal, which counts and sizes of equal programs are; times practically never are.
            twin = next((i for i, (known, _) in enumerate(self._best) if known == cost), None)
            if twin is None:
                self._best = sorted([*self._best, (cost, candidate)], key=lambda pair: pair[0])[: self._few]
            elif len(candidate.steps) < len(self._best[twin][1].steps):
                self._best[twin] = (cost, candidate)
