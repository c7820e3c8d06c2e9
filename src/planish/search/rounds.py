"""Searchers as generators of rounds, with ask and tell on their behalf.

A search algorithm reads best as a loop that yields candidates and receives their costs. `RoundSearcher` and
`VectorRoundSearcher` turn such a generator into a `planish.core.Searcher`; `Recall` has what the same
search proposed in an earlier session, so that a resumed search need not draw it again.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar, Generic, TypeVar

from planish.core import Candidate, Measured, Objective, Searcher, Space, Trial

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
