"""What the executors of one process have in common: candidates wait in a queue, and are answered in order."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Self

from planish.core import Candidate, EvaluatorSpec, PlanishError
from planish.executors.queue import Queue
from planish.sandbox import Answer


class InOrder:
    """Answers for one candidate at a time, in order, when its answer is asked for; a subclass answers.

    Attributes:
        losses: none, since there are no workers.
    """

    capacity = 1

    def __init__(self) -> None:
        self._queue, self._deadline, self._closed = Queue(), math.inf, False
        self.losses: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def notes(self) -> Sequence[str]:
        """What the evaluator has to tell the user."""
        return ()

    def serve(self, spec: EvaluatorSpec) -> None:
        """Evaluate by another evaluator from now on; see `planish.core.Executor`."""
        self._check_open()
        if self._queue.unanswered:
            raise PlanishError("a batch is under way", "Take all its answers, or cancel it, first.")
        self._take(spec)

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        """Have candidates evaluated; see `planish.core.Executor`."""
        self._check_open()
        self._queue = self._queue if self._queue.unanswered else Queue()
        self._queue.add(candidates)
        self._deadline = deadline

    def answers(self) -> Iterator[Answer]:
        """Answer for one after the other, until the deadline."""
        while self._queue and time.monotonic() < self._deadline:
            (position,), (candidate,) = self._queue.take(1)
            self._queue.answered(position)
            yield self._answer(position, candidate)
        self.cancel()

    def cancel(self) -> None:
        """Forget what was submitted."""
        self._queue = Queue()

    def close(self) -> None:
        """Take nothing more; harmless when called twice."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise PlanishError("the executor is closed", "Make a new one.")

    def _take(self, spec: EvaluatorSpec) -> None:
        raise NotImplementedError

    def _answer(self, position: int, candidate: Candidate) -> Answer:
        raise NotImplementedError
