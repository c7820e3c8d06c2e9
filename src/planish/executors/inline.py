"""Executor that evaluates candidates in this process, one after the other."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

from planish.core import Candidate, Evaluation, Evaluator, EvaluatorSpec, HasNotes, PlanishError
from planish.measure.clock import Clock
from planish.measure.machine_lock import machine_lock
from planish.sandbox.protocol import HOST, STAGE_CLOCK_BYTES, StageClockShm, evaluate_one


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
        """Count those that wait for a worker."""
        return len(self._queue)

    @property
    def unanswered(self) -> int:
        """Return the number of candidates without a result."""
        return len(self._open)

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Have more evaluated, after all others."""
        for candidate in candidates:
            self._open[self._added] = candidate
            self._queue.append(self._added)
            self._added += 1

    def take(self, count: int) -> tuple[list[int], list[Candidate]]:
        """Return the next candidates, with their positions."""
        positions = [self._queue.popleft() for _ in range(count)]
        return positions, [self._open[position] for position in positions]

    def put_back(self, positions: Sequence[int]) -> None:
        """Have these evaluated before all others."""
        self._queue.extendleft(reversed(positions))

    def finish(self, position: int) -> Candidate:
        """Remove a candidate whose result is there, and return it."""
        self._losses.pop(position, None)
        return self._open.pop(position)

    def lose(self, position: int) -> bool:
        """Count a loss; whether the candidate is evaluated again, before all others."""
        self._losses[position] += 1
        again = self._losses[position] < self._attempts
        if again:
            self._queue.appendleft(position)
        return again


class InOrder:
    """Evaluates one candidate at a time, in order, when its result is asked for; a subclass evaluates.

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
        """Return the evaluator's notes for the user."""
        return ()

    def serve(self, spec: EvaluatorSpec) -> None:
        """Evaluate by another evaluator from now on; see `planish.core.Executor`."""
        self._check_open()
        if self._queue.unanswered:
            raise PlanishError("a batch is under way", "Take all its results, or cancel it, first.")
        self._take(spec)

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        """Have candidates evaluated; see `planish.core.Executor`."""
        self._check_open()
        self._queue = self._queue if self._queue.unanswered else Queue()
        self._queue.add(candidates)
        self._deadline = deadline

    def results(self) -> Iterator[Evaluation]:
        """Evaluate one candidate after the other, until the deadline."""
        while self._queue and time.monotonic() < self._deadline:
            (position,), (candidate,) = self._queue.take(1)
            self._queue.finish(position)
            yield self._evaluate(candidate)
        self.cancel()

    def cancel(self) -> None:
        """Forget what was submitted."""
        self._queue = Queue()

    def close(self) -> None:
        """Close the executor; harmless when called twice."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise PlanishError("the executor is closed", "Make a new one.")

    def _take(self, spec: EvaluatorSpec) -> None:
        raise NotImplementedError

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        raise NotImplementedError


class InlineExecutor(InOrder):
    """Evaluates in this process, one candidate at a time, in order, when its result is asked for.

    Exceptions become `Failed` outcomes as in a worker; nothing else is isolated, and no limit is kept.

    Args:
        evaluator: evaluates.
        lock: the file by which timed runs exclude each other; None for the machine's.
    """

    def __init__(self, evaluator: Evaluator, *, lock: Path | None = None) -> None:
        super().__init__()
        self._evaluator = evaluator
        self._clock = Clock(StageClockShm(memoryview(bytearray(STAGE_CLOCK_BYTES))), lock or machine_lock())

    @property
    def notes(self) -> Sequence[str]:
        """Return the evaluator's notes for the user."""
        return tuple(self._evaluator.notes) if isinstance(self._evaluator, HasNotes) else ()

    def _take(self, spec: EvaluatorSpec) -> None:
        self._evaluator = spec()

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        return Evaluation(candidate, *evaluate_one(self._evaluator, candidate, self._clock), HOST)
