"""Searchers as generators of rounds, with ask and tell on their behalf, and what they propose.

A search algorithm reads best as a loop that yields candidates and receives their costs. `RoundSearcher` and
`VectorRoundSearcher` turn such a generator into a `planish.core.Searcher`; `Recall` has what the same
search proposed in an earlier session, so that a resumed search need not draw it again.

A space may find nothing legal where it looks, and may reach one program in many ways. So samples and
neighbors are drawn until one is new, and a space in which a thousand draws repeat counts as used up.
`Archive` keeps the best measured ones.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from planish.core import (
    Candidate,
    CanEvolve,
    CanSample,
    Measured,
    Objective,
    ScheduleError,
    Searcher,
    Space,
    Trial,
    rng,
)

if TYPE_CHECKING:
    from numpy.random import Generator as Draws

Proposed = Callable[[int], Candidate | None]
"""The index of a proposal, from 0, to the proposal; None where it is not known."""


class Recall:
    """Proposals by their index, as long as the search proposes what it proposed before.

    A proposal follows from the seed, its index, and what the earlier ones cost. So what is known of the same
    search need not be drawn again. A search that has changed since differs where it draws by itself:
    then all else is drawn too.
    """

    def __init__(self) -> None:
        self._proposed: Proposed | None = None

    def begin(self, proposed: Proposed) -> None:
        """Replay earlier proposals; to be called before the search begins."""
        self._proposed = proposed

    def at(self, index: int) -> Candidate | None:
        """Return the proposal of an index; None where it is not known."""
        return self._proposed(index) if self._proposed else None

    def check(self, index: int, candidate: Candidate) -> None:
        """Compare what was drawn with what is known; where they differ, nothing is known from here on."""
        known = self.at(index)
        # What follows was proposed by a search that knew other things: to mix both would be a third one.
        if known is not None and known.hash != candidate.hash:
            self._proposed = None


_Result = TypeVar("_Result")
_Item = TypeVar("_Item")

Costs = Mapping[str, float | None]
"""Candidate hash to its cost by the first objective (less is better); None where it failed."""

Rounds = Generator[Iterable[Candidate], Costs, None]
"""Yields rounds of candidates that do not depend on each other; is sent the costs of the last one."""

CostVectors = Mapping[str, tuple[float, ...] | None]
"""Candidate hash to its costs by all objectives, in their order; None where it failed or lacks one."""

VectorRounds = Generator[Iterable[Candidate], CostVectors, None]
"""Rounds that are sent the costs by all objectives."""


TrialRounds = Generator[Iterable[Candidate], Mapping[str, Trial | None], None]
"""Rounds that are sent the trials."""


def single_round(candidates: Iterable[Candidate]) -> Rounds:
    """Yield one round: nothing is learnt from it."""
    yield candidates


def recording(items: Iterable[_Item], into: list[_Item]) -> Iterator[_Item]:
    """Yield a round bit by bit, candidates or groups of them, and record what was asked for of it."""
    for item in items:
        into.append(item)
        yield item


class _Asking(Searcher, Generic[_Result]):
    """Searcher over a generator of rounds.

    A round is proposed in parts of any size, and the generator goes on when all its results have come,
    in whatever order; until then nothing more is proposed. So the candidates and their order depend neither
    on how many are asked for at once nor on which result comes first, and a run cut short is the beginning
    of the longer run.

    Args:
        rounds: the search; a round may be lazy, and an empty one is passed over.
        read: what the generator is sent of a trial.
        recall: what the generator asks for what was proposed before.
    """

    needs: ClassVar[type] = Space
    library: ClassVar[str | None] = None

    def __init__(
        self,
        rounds: Generator[Iterable[Candidate], Mapping[str, _Result | None], None],
        read: Callable[[Trial], _Result | None],
        recall: Recall | None,
    ) -> None:
        self._rounds = rounds
        self._read = read
        self._recall = recall or Recall()
        # A generator that can recall begins when it is asked: what to recall is set before.
        self._round = None if recall else iter(next(rounds, ()))
        self._results: dict[str, _Result | None] = {}
        self._asked: dict[str, None] = {}
        self._waiting: set[str] = set()

    def replay(self, proposed: Proposed) -> None:
        """Replay the earlier proposals of the same search; see `planish.core.Searcher`."""
        self._recall.begin(proposed)

    def ask(self, n: int) -> Sequence[Candidate]:
        """Propose up to n candidates; fewer at the end of a round.

        Returns:
            Nothing while results of a round that is used up are missing, and at the end of the search.

        Raises:
            ValueError: n is not positive.
        """
        if n < 1:
            raise ValueError(f"ask takes a positive number, not {n}")
        if self._round is None:
            self._round = iter(next(self._rounds, ()))
        # A loop, for a round may be empty: where all its candidates were known, the next one is asked for.
        while not (batch := list(islice(self._round, n))):
            # Not before every result is there: what comes next must not depend on which worker was faster.
            if self._waiting or not self._next_round():
                return []
        names = [candidate.hash for candidate in batch]
        self._asked.update(dict.fromkeys(names))
        self._waiting.update(names)
        return batch

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what became of the candidates; a value that is not finite counts as a failure."""
        for trial in trials:
            # Kept to the end of the round, even if not asked for: baselines and earlier trials come, too.
            self._results[trial.candidate.hash] = self._read(trial)
            self._waiting.discard(trial.candidate.hash)

    def _next_round(self) -> bool:
        # In the order of the proposals, whichever order the results came in; first what was not asked for.
        unasked = {name: result for name, result in self._results.items() if name not in self._asked}
        results = unasked | {name: self._results[name] for name in self._asked}
        self._results, self._asked = {}, {}
        try:
            self._round = iter(self._rounds.send(results))
        except StopIteration:
            return False
        return True


class RoundSearcher(_Asking[float]):
    """Searches by the first objective, by a generator of rounds.

    Args:
        objectives: at least one; the first leads.
        rounds: the search.
        recall: what the search asks for what was proposed before; None where it draws all itself.
    """

    def __init__(self, objectives: Sequence[Objective], rounds: Rounds, recall: Recall | None = None) -> None:
        def read(trial: Trial) -> float | None:
            # The first alone: a trial that lacks another objective still has a cost to search by.
            costs = trial.costs(objectives[:1])
            return costs[0] if costs else None

        super().__init__(rounds, read, recall)


class VectorRoundSearcher(_Asking[tuple[float, ...]]):
    """Searches by all objectives at once, by a generator of rounds.

    Args:
        objectives: at least one.
        rounds: the search.
        recall: what the search asks for what was proposed before; None where it draws all itself.
    """

    def __init__(
        self, objectives: Sequence[Objective], rounds: VectorRounds, recall: Recall | None = None
    ) -> None:
        super().__init__(rounds, lambda trial: trial.costs(objectives), recall)


class TrialRoundSearcher(_Asking[Trial]):
    """Searches by whole trials, by a generator of rounds.

    Args:
        rounds: the search.
    """

    def __init__(self, rounds: TrialRounds) -> None:
        super().__init__(rounds, lambda trial: trial, None)


def measured_of(trial: Trial | None) -> Measured | None:
    """Return the measured outcome of a candidate; None where it failed, was lost, or has no trial."""
    return trial.outcome if trial is not None and isinstance(trial.outcome, Measured) else None


def quality(cost: float, reference: float) -> float:
    """Return the quality of a cost relative to a reference: 1 when equal, less when worse, at least 0.

    For times it is reference / cost, and for a quantity to be raised, value / reference value:
    in both cases AutoTVM's fitness up to a factor. It is 0 for costs without a ratio (of different
    signs, or zero as the reference), where the first is the worse.

    Args:
        cost: as `Objective.cost` returns it, finite.
        reference: the same, of what it is compared with.
    """
    # Costs of objectives to be raised are negative, hence the magnitudes.
    scale = max(abs(cost), abs(reference))
    return max(0.0, 1.0 - (cost - reference) / scale) if scale else 1.0


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


def sample(space: CanSample, generator: Draws) -> Candidate | None:
    """Draw a candidate; None where the space finds none in `TRIES` draws."""
    for _ in range(TRIES):
        try:
            return space.sample(generator)
        except ScheduleError:
            continue
    return None


def neighbor(space: CanEvolve, candidate: Candidate, generator: Draws) -> Candidate | None:
    """Return a neighbor; where the space finds none, a sample; None where it finds none of these either."""
    try:
        return space.mutate(candidate, generator)
    except ScheduleError:
        return sample(space, generator)


def new_sample(space: CanSample, visited: Visited, generator: Draws) -> Candidate | None:
    """Draw until a candidate is new, and record it; None where the space seems used up."""
    return visited.make_unique(sample(space, generator), lambda _: sample(space, generator))


def new_from(space: CanEvolve, visited: Visited, child: Candidate, generator: Draws) -> Candidate | None:
    """Change a candidate until it is new, and record it; None where the space seems used up."""
    return visited.make_unique(child, lambda candidate: neighbor(space, candidate, generator))


def new_candidates(
    visited: Visited,
    seed: int,
    indices: Iterable[int],
    draw: Callable[[Draws], Candidate | None],
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


def changed(space: CanEvolve, candidate: Candidate, times: int, generator: Draws) -> Candidate:
    """Change a candidate a number of times; it stays as it is where the space finds nothing legal at all."""
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
        """Return the cost of a candidate; None where it failed or was never measured."""
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
