"""What is under way: candidates still to be evaluated, and how often each was lost with its worker."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from planish.core import Candidate


class Queue:
    """Candidates to be evaluated, in their order; more may be added at any time.

    Args:
        attempts: how often one is evaluated that is lost each time.
    """

    def __init__(self, attempts: int = 1) -> None:
        self._attempts = attempts
        self._open: dict[int, Candidate] = {}
        self._queue: deque[int] = deque()
        self._losses: Counter[int] = Counter()
        self._added = 0

    def __len__(self) -> int:
        """Count those who wait for a worker."""
        return len(self._queue)

    @property
    def unanswered(self) -> int:
        """How many have no answer yet."""
        return len(self._open)

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Have more evaluated, after all others."""
        for candidate in candidates:
            self._open[self._added] = candidate
            self._queue.append(self._added)
            self._added += 1

    def take(self, count: int) -> tuple[list[int], list[Candidate]]:
        """Give the next ones: their positions, and the candidates."""
        positions = [self._queue.popleft() for _ in range(count)]
        return positions, [self._open[position] for position in positions]

    def put_back(self, positions: Sequence[int]) -> None:
        """Have these evaluated before all others."""
        self._queue.extendleft(reversed(positions))

    def answered(self, position: int) -> None:
        """Note that a candidate has its answer."""
        del self._open[position]
        self._losses.pop(position, None)

    def lose(self, position: int) -> bool:
        """Count a loss; whether the candidate is evaluated again, before all others."""
        self._losses[position] += 1
        again = self._losses[position] < self._attempts
        if again:
            self._queue.appendleft(position)
        return again
