"""What an executor is at: which answer belongs to which candidate, and how much more it has capacity for."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

from planish.core import Candidate, Evaluation, Executor


class UnderWay:
    """The candidates that an executor evaluates just now.

    Args:
        executor: has nothing under way.

    Attributes:
        start_s: from the first submission until the first answer; 0 while there is none.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._open: dict[int, Candidate] = {}
        self._submitted = 0
        self._deadline = math.inf
        self._begun: float | None = None
        self.start_s = 0.0

    @property
    def count(self) -> int:
        """How many have no answer yet."""
        return len(self._open)

    @property
    def candidates(self) -> list[Candidate]:
        """Those that have no answer yet, in the order of submission."""
        return list(self._open.values())

    @property
    def room(self) -> int:
        """How many more the executor has capacity for; one at least where it has nothing to do."""
        return max(self._executor.capacity - self.count, 0 if self._open else 1)

    @property
    def is_hungry(self) -> bool:
        """Whether half of the capacity is free: to ask for one candidate at a time would have its price."""
        return 2 * self.room >= self._executor.capacity

    def submit(self, candidates: Sequence[Candidate], deadline: float) -> None:
        """Have candidates evaluated; see `planish.core.Executor.submit`."""
        if not self._open:  # an executor counts anew then
            self._submitted = 0
        self._begun = self._begun or time.monotonic()
        self._deadline = deadline
        self._executor.submit(candidates, deadline)
        self._open.update(enumerate(candidates, self._submitted))
        self._submitted += len(candidates)

    def extend(self, deadline: float) -> None:
        """Give what is under way another deadline."""
        if self._open and deadline != self._deadline:
            self.submit((), deadline)

    def answers(self) -> Iterator[tuple[Candidate, Evaluation]]:
        """Give the answers as they come, each with its candidate, until all are there or at the deadline."""
        for answer in self._executor.answers():
            if self._begun is not None and not self.start_s:
                self.start_s = time.monotonic() - self._begun
            yield self._open.pop(answer.position), answer
        self._open.clear()  # those that missed the deadline were given up

    def cancel(self) -> None:
        """Give up what has no answer yet."""
        self._open.clear()
        self._executor.cancel()
