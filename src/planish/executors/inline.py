"""The executor of this process: for tests, simulation, and evaluators that cannot hurt."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from planish.core import Candidate, Evaluator, EvaluatorSpec
from planish.executors.batch import Batch
from planish.isolation.dial import DIAL_BYTES, Dial
from planish.isolation.guard import Answer, answer
from planish.measure.clock import Clock
from planish.measure.machine_lock import machine_lock


class InlineExecutor:
    """Evaluates in this process, one candidate at a time, in order, when its answer is asked for.

    Exceptions become `Failed` answers as in a worker; nothing else is isolated, and no limit is kept.

    Args:
        evaluator: evaluates.
        lock: the file by which timed runs exclude each other; None for the machine's.

    Attributes:
        losses: none, since there are no workers.
    """

    capacity = 1

    def __init__(self, evaluator: Evaluator, *, lock: Path | None = None) -> None:
        self._evaluator = evaluator
        self._clock = Clock(Dial(memoryview(bytearray(DIAL_BYTES))), lock or machine_lock())
        self._batch, self._deadline = Batch(), math.inf
        self.losses: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def notes(self) -> Sequence[str]:
        """What the evaluator has to tell the user."""
        return tuple(getattr(self._evaluator, "notes", ()))

    def serve(self, factory: EvaluatorSpec) -> None:
        """Evaluate by another evaluator from now on."""
        self.cancel()
        self._evaluator = factory()

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        """Have candidates evaluated; see `planish.core.Executor`."""
        self._batch = self._batch if self._batch.unanswered else Batch()
        self._batch.add(candidates)
        self._deadline = deadline

    def answers(self) -> Iterator[Answer]:
        """Evaluate one after the other, until the deadline."""
        while self._batch and time.monotonic() < self._deadline:
            (position,), (candidate,) = self._batch.take(1)
            self._batch.answered(position)
            yield self._answer(position, candidate)
        self.cancel()

    def _answer(self, position: int, candidate: Candidate) -> Answer:
        return answer(self._evaluator, position, candidate, self._clock)

    def cancel(self) -> None:
        """Forget what was submitted."""
        self._batch = Batch()

    def close(self) -> None:
        """Do nothing: there are no workers."""
