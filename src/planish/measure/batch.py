"""A batch under way: what is still to be evaluated, and how often each was lost with its worker."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from planish.core import Candidate


class Batch:
    """Candidates to be evaluated, in their order.

    Args:
        candidates: what is to be evaluated.
        attempts: how often one is evaluated that is lost each time.
    """

    def __init__(self, candidates: Sequence[Candidate] = (), attempts: int = 1) -> None:
        self._candidates, self._attempts = candidates, attempts
        self._queue = deque(range(len(candidates)))
        self._losses: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._queue)

    def take(self, count: int) -> tuple[list[int], list[Candidate]]:
        """Give the next ones: their positions, and the candidates."""
        positions = [self._queue.popleft() for _ in range(count)]
        return positions, [self._candidates[position] for position in positions]

    def put_back(self, positions: Iterable[int]) -> None:
        """Have these evaluated before all others."""
        self._queue.extendleft(reversed(list(positions)))

    def lose(self, position: int) -> bool:
        """Count a loss; whether the candidate is evaluated again, before all others."""
        self._losses[position] += 1
        again = self._losses[position] < self._attempts
        if again:
            self._queue.appendleft(position)
        return again
