"""A searcher is written as a generator of rounds; this turns one into ask and tell."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar, Generic, TypeVar

from planish.core import Candidate, Objective, Space, Trial
from planish.search.recall import Proposed, Recall

_Told = TypeVar("_Told")
_Item = TypeVar("_Item")

Costs = Mapping[str, float | None]
"""Candidate hash to its cost by the first objective (less is better); None where it failed."""

Rounds = Generator[Iterable[Candidate], Costs, None]
"""Yields rounds of candidates that do not depend on each other; is sent the costs of the last one."""

CostVectors = Mapping[str, tuple[float, ...] | None]
"""Candidate hash to its costs by all objectives, in their order; None where it failed or lacks one."""

VectorRounds = Generator[Iterable[Candidate], CostVectors, None]
"""Rounds that are sent the costs by all objectives."""


def once(candidates: Iterable[Candidate]) -> Rounds:
    """Make one round: nothing is learnt on the way."""
    yield candidates


def noted(items: Iterable[_Item], into: list[_Item]) -> Iterator[_Item]:
    """Give a round bit by bit, candidates or groups of them, and note what was asked for of it."""
    for item in items:
        into.append(item)
        yield item


class _Asking(Generic[_Told]):
    """Asks and tells on behalf of a generator of rounds.

    A round is handed out in pieces of any size, and the generator goes on when all of it has been
    told, in whatever order; until then nothing more is proposed. So the candidates and their order depend
    neither on how many are asked for at once nor on which answer comes first, and a run cut short is the
    beginning of the longer run.

    Args:
        rounds: the search; a round may be lazy, and an empty one is passed over.
        read: what the generator is sent of a trial.
        recall: what the generator asks for what was proposed before.
    """

    needs: ClassVar[type] = Space
    library: ClassVar[str | None] = None

    def __init__(
        self,
        rounds: Generator[Iterable[Candidate], Mapping[str, _Told | None], None],
        read: Callable[[Trial], _Told | None],
        recall: Recall | None,
    ) -> None:
        self._rounds = rounds
        self._read = read
        self._recall = recall or Recall()
        # A generator that can recall begins when it is asked: it is told what to recall before.
        self._round = None if recall else iter(next(rounds, ()))
        self._told: dict[str, _Told | None] = {}
        self._asked: dict[str, None] = {}
        self._waiting: set[str] = set()

    def recall(self, proposed: Proposed) -> None:
        """Take what the same search has proposed before; see `planish.core.CanRecall`."""
        self._recall.begin(proposed)

    def ask(self, n: int) -> Sequence[Candidate]:
        """Propose up to n candidates; fewer at the end of a round.

        Returns:
            Nothing while a round is used up and not all of it has been told, and at the end of the search.

        Raises:
            ValueError: n is not positive.
        """
        if n < 1:
            raise ValueError(f"ask takes a positive number, not {n}")
        if self._round is None:
            self._round = iter(next(self._rounds, ()))
        # A loop, for a round may be empty: where all its candidates were known, the next one is asked for.
        while not (batch := list(islice(self._round, n))):
            # Not before every answer is there: what comes next must not depend on which worker was faster.
            if self._waiting or not self._next_round():
                return []
        names = [candidate.hash for candidate in batch]
        self._asked.update(dict.fromkeys(names))
        self._waiting.update(names)
        return batch

    def tell(self, trials: Sequence[Trial]) -> None:
        """Learn what became of the candidates; a value that is not finite counts as a failure."""
        for trial in trials:
            # Kept for the end of the round, even if nobody asked: baselines and trials of before are told,
            # too.
            self._told[trial.candidate.hash] = self._read(trial)
            self._waiting.discard(trial.candidate.hash)

    def _next_round(self) -> bool:
        # In the order of the proposals, whichever order the answers came in; first what nobody asked for.
        unasked = {name: told for name, told in self._told.items() if name not in self._asked}
        told = unasked | {name: self._told[name] for name in self._asked}
        self._told, self._asked = {}, {}
        try:
            self._round = iter(self._rounds.send(told))
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
