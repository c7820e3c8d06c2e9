"""Executors of candidates: in this process, or in sandboxed workers."""

from __future__ import annotations

import itertools
import math
import pickle
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from planish.core import (
    STAGES,
    Candidate,
    ClosableExecutor,
    Evaluation,
    Evaluator,
    EvaluatorSpec,
    Failed,
    HasNotes,
    Lost,
    LostError,
    PlanishError,
    SequentialExecutor,
    Stage,
)
from planish.measure.clock import Clock, LockWaits
from planish.measure.machine_lock import is_held, machine_lock
from planish.sandbox.confinement import SandboxPolicy
from planish.sandbox.limits import Limits
from planish.sandbox.protocol import (
    HOST,
    STAGE_CLOCK_BYTES,
    EvaluationReply,
    EvaluatorReady,
    StageClockShm,
    evaluate_one,
)
from planish.sandbox.workers import WorkerPool, WorkerProcess

Item = TypeVar("Item")
Found = TypeVar("Found")


class Queue(Generic[Item]):
    """Items such as candidates to be evaluated, in their order; more may be added at any time.

    Args:
        attempts: how often one is evaluated that is lost each time.
    """

    # Of all queues: a late answer to one must not be taken for another's.
    _positions: ClassVar[Iterator[int]] = itertools.count()

    def __init__(self, attempts: int = 1) -> None:
        self._attempts = attempts
        self._open: dict[int, Item] = {}
        self._queue: deque[int] = deque()
        self._losses: Counter[int] = Counter()

    def __len__(self) -> int:
        """Count those that wait for a worker."""
        return len(self._queue)

    @property
    def unanswered(self) -> int:
        """Return the number of candidates without a result."""
        return len(self._open)

    def add(self, items: Iterable[Item]) -> None:
        """Have more evaluated, after all others."""
        for item in items:
            position = next(self._positions)
            self._open[position] = item
            self._queue.append(position)

    def take(self, count: int) -> tuple[list[int], list[Item]]:
        """Return the next items, with their positions."""
        positions = [self._queue.popleft() for _ in range(count)]
        return positions, [self._open[position] for position in positions]

    def put_back(self, positions: Sequence[int]) -> None:
        """Have these evaluated before all others."""
        self._queue.extendleft(reversed(positions))

    def finish(self, position: int) -> Item:
        """Remove an item whose result is there, and return it."""
        self._losses.pop(position, None)
        return self._open.pop(position)

    def lose(self, position: int) -> bool:
        """Count a loss; whether the item is evaluated again, before all others."""
        self._losses[position] += 1
        again = self._losses[position] < self._attempts
        if again:
            self._queue.appendleft(position)
        return again


class QueuedExecutor(ClosableExecutor, ABC, Generic[Item, Found]):
    """Base class of executors that evaluate a queue of candidates, or other items, in other processes.

    Attributes:
        deadline: when all that is under way is given up, by the monotonic clock, whatever `submit` said.
        notes: for the user, each once.
    """

    notes: tuple[str, ...] = ()
    _limits: Limits

    def __init__(self) -> None:
        self._queue = Queue[Item]()
        self._ready: deque[Found] = deque()
        self._answering = False
        self.deadline = self._until = math.inf

    @property
    def _attempts(self) -> int:
        """Return how often an item is evaluated that is lost each time."""
        return self._limits.attempts

    def submit(self, candidates: Sequence[Item], deadline: float = math.inf) -> None:
        """Have candidates, or other items, evaluated; see `planish.core.Executor`.

        Raises:
            PlanishError: the executor is closed.
        """
        self._check_open()
        if not self._queue.unanswered:
            self._queue = Queue[Item](self._attempts)
        self._queue.add(candidates)
        self._until = deadline

    @property
    def has_result(self) -> bool:
        """Return whether `results` yields one at once."""
        return bool(self._ready)

    def results(self, wait_s: float = math.inf) -> Generator[Found, None, None]:
        """Yield evaluations as they end; see `planish.core.Executor`.

        Args:
            wait_s: seconds after which no further result is waited for: the iterator ends, and `results` may
                be called again.

        Raises:
            PlanishError: the evaluator cannot be made; the results are already being taken.
            LostError: nothing is left that evaluates.
        """
        self._check_idle(self._answering)
        self._answering, until = True, time.monotonic() + wait_s
        try:
            while self._ready or self._queue.unanswered:
                if self._ready:
                    before = time.monotonic()
                    yield self._ready.popleft()
                    self._extend_deadlines(time.monotonic() - before)
                elif time.monotonic() >= min(self._until, self.deadline):
                    self.cancel()
                elif time.monotonic() >= until:
                    return
                else:
                    self._advance()
        except GeneratorExit:
            raise
        except BaseException:
            self.cancel()
            raise
        finally:
            self._answering = False

    def cancel(self) -> None:
        """Abandon what is under way, and results that were not taken."""
        self._queue = Queue[Item](self._attempts)
        self._ready.clear()

    @abstractmethod
    def _advance(self) -> None:
        """Send out what can be evaluated, and wait a little for results, which become ready."""

    def _add_notes(self, notes: Iterable[str]) -> None:
        self.notes = tuple(dict.fromkeys((*self.notes, *notes)))

    def _extend_deadlines(self, pause: float) -> None:
        """Extend the deadlines of evaluations by seconds in which this process did not read replies."""


class InlineExecutor(SequentialExecutor):
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

    def _set_evaluator(self, spec: EvaluatorSpec) -> None:
        self._evaluator = spec()

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        return Evaluation(candidate, *evaluate_one(self._evaluator, candidate, self._clock), HOST)


_TICK_S = 0.05  # how often limits are looked at
_CHUNK_S = 0.02  # how much work is sent at once: a pipe's round trip is lost in it
_CHUNK_MOST = 32
_LATE_S = 0.25  # a look that comes so late shows that this process itself was stopped or starved
_DOUBT_S = 1.0  # a failure after such a stop may be that of a clock that went on
_MAX_FAILED_CREATIONS = 3  # evaluators in a row that are lost while they are created


class LocalExecutor(QueuedExecutor[Candidate, Evaluation]):
    """Evaluates in worker processes of this machine.

    A candidate that crashes, hangs or runs out of memory is a `Failed` outcome; its worker's
    process group is killed and replaced, and the rest of the batch is evaluated as if nothing
    had been. A candidate whose worker is killed from outside, or gets no processor, is evaluated
    again in another one; after some attempts it is a `Lost` outcome. All ends with this process, even
    if it is killed. Where the system has no seccomp, evaluated code that starts a session of its own
    escapes; nothing else does. An executor belongs to one thread at a time.

    Stages named "run" exclude each other on the whole machine (see `Clock`).

    Args:
        spec: makes the evaluator in each worker; it is pickled, with what it holds.
        workers: how many processes, at least 1.
        limits: what one evaluation may use; None takes those that the spec asks for (`Limits.of`). The
            memory is that of the first spec: a process keeps it.
        lock: the file by which timed runs exclude each other; None for the machine's.
        waits: watches, for a lock, the workers that wait for it.

    Attributes:
        notes: the evaluators' notes for the user: texts of their attribute `notes`, where they have
            one. Known once a candidate was answered for.
        losses: how many evaluations were lost with their workers so far, each attempt counted, by cause.

    Raises:
        PlanishError: fewer than 1 worker, the spec cannot be pickled, or the system starts no more
            processes.
    """

    _forks: ClassVar[bool] = False

    def __init__(
        self,
        spec: EvaluatorSpec,
        *,
        workers: int = 1,
        limits: Limits | None = None,
        lock: Path | None = None,
        waits: Callable[[Path], LockWaits] = LockWaits,
    ) -> None:
        if workers < 1:
            raise PlanishError(f"{workers} workers cannot evaluate anything", "Ask for at least 1.")
        super().__init__()
        self._given = limits
        self._limits = limits or Limits.of(spec)
        self._lock = lock = lock or machine_lock()
        self._waits = waits(lock)
        # The spec is kept too: what it owns, such as a folder for its workers, may end with it.
        self._owner, self._spec, self._sandbox = spec, pickled(spec), SandboxPolicy.of(spec)
        self._serial = 1
        self.losses: Counter[str] = Counter()
        self._pool = WorkerPool(
            workers, self._limits.memory_bytes, partial(Clock, lock=lock), forks=self._forks
        )
        self._pace = _CHUNK_S / 4  # seconds that a candidate takes, lately
        self._next_look = 0.0
        self._failed_creations = 0  # evaluators in a row that were lost while they were created
        self._dispatch()

    @property
    def capacity(self) -> int:
        """Enough for all workers to make the round trip of a pipe negligible."""
        return 2 * self._pool.count * self._chunk()

    def processor_s(self) -> float:
        """Return the processor time of the running workers, in seconds."""
        return sum(worker.processor_s() for worker in self._pool.workers)

    def serve(self, spec: EvaluatorSpec) -> None:
        """Evaluate for another task from now on, in the same processes: it saves their start.

        Where candidates are to be confined otherwise, they are other processes.

        Raises:
            PlanishError: something is under way, the executor is closed, or the spec cannot be pickled.
        """
        self._check_open()
        self._check_idle(self._queue.unanswered or self._answering)
        self._owner, self._spec, self._sandbox = spec, pickled(spec), SandboxPolicy.of(spec)
        self._pool.recycle_if_changed(self._sandbox)
        self._limits = self._given or Limits.of(spec)
        self._serial += 1
        self.notes = ()
        self._dispatch()

    def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
        """Have candidates evaluated; see `planish.core.Executor`.

        Raises:
            PlanishError: the executor is closed; this process holds the machine, so that its workers would
                wait for ever.
        """
        if is_held(self._lock):
            raise PlanishError("workers would wait for this process for ever", "Leave `exclusive()` first.")
        super().submit(candidates, deadline)

    def results(self, wait_s: float = math.inf) -> Generator[Evaluation, None, None]:
        """Yield evaluations as they end; see `QueuedExecutor`."""
        self._next_look = time.monotonic() + _TICK_S
        yield from super().results(wait_s)

    def cancel(self) -> None:
        """Abandon what is under way; the workers that evaluate it are killed."""
        super().cancel()
        for worker in [w for w in self._pool.workers if w.pending]:
            self._pool.kill(worker)

    def close(self) -> None:
        """End the workers; harmless when called twice."""
        super().close()
        self._pool.close()

    def _advance(self) -> None:
        self._dispatch()
        for answer in self._poll():
            candidate = self._queue.finish(answer.position)
            self._ready.append(Evaluation(candidate, answer.outcome, answer.seconds, answer.host))

    def _extend_deadlines(self, pause: float) -> None:
        self._next_look += pause
        for worker in self._pool.workers:
            worker.grace += pause

    def _dispatch(self) -> None:
        """Assign candidates to every idle worker; one at the end of its lifetime is replaced first."""
        batch = self._queue
        if batch and self._limits.lifetime is not None:
            self._pool.recycle_old(self._limits.lifetime)
        self._pool.fill()
        for worker in [w for w in self._pool.workers if not w.busy]:
            if worker.serial != self._serial:
                worker.create_evaluator(self._serial, self._spec, self._sandbox)
            elif batch:
                worker.evaluate(*batch.take(self._chunk_size(len(batch))))

    def _chunk_size(self, queued: int) -> int:
        """Return the size of a chunk: small enough to balance workers, large enough to hide round trips."""
        # As in guided self-scheduling, chunks shrink with what is left.
        share = queued if self._pool.count == 1 else -(-queued // (2 * self._pool.count))
        return max(1, min(share, self._chunk()))

    def _chunk(self) -> int:
        return max(1, min(_CHUNK_MOST, int(_CHUNK_S / self._pace)))

    def _poll(self) -> list[EvaluationReply]:
        replies: list[EvaluationReply] = []
        for worker in self._pool.ready(_TICK_S):
            self._allow_for_stop()
            replies += self._on_readable(worker)
        self._allow_for_stop()
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _TICK_S
            self._check_lock_waits()
            for worker in [w for w in self._pool.workers if w.busy]:
                replies += self._check_timeouts(worker)
        return replies

    def _allow_for_stop(self) -> None:
        """Extend deadlines by the time in which this process was stopped, perhaps with its workers."""
        late = time.monotonic() - self._next_look
        if late > _LATE_S:
            self._extend_deadlines(late)
            for worker in self._pool.workers:
                worker.stalls.stopped += late
                worker.grace -= late

    def _on_readable(self, worker: WorkerProcess) -> list[EvaluationReply]:
        replies: list[EvaluationReply] = []
        doubtful = worker.stalls.stopped > _DOUBT_S
        try:
            for reply in worker.read():
                if isinstance(reply, EvaluatorReady):
                    self._on_ready(worker, reply)
                elif doubtful and isinstance(reply.outcome, Failed):
                    worker.pending.appendleft(
                        reply.position
                    )  # what it remembers is not to be believed either
                    lost = Lost(reply.outcome.stage, "stopped", "its worker was stopped")
                    return [*replies, *self._end(worker, lost)]
                else:
                    doubtful = False
                    # A moving average over some eight candidates.
                    self._pace += (sum(reply.seconds.values()) - self._pace) / 8
                    replies += self._checked(reply)
        except EOFError:
            replies += self._on_exit(worker)
        return replies

    def _checked(self, reply: EvaluationReply) -> list[EvaluationReply]:
        """Return the reply, unless the candidate is evaluated again."""
        if not isinstance(reply.outcome, Lost):
            return [reply]
        self.losses[reply.outcome.detail] += 1
        return [] if self._queue.lose(reply.position) else [reply]

    def _on_ready(self, worker: WorkerProcess, reply: EvaluatorReady) -> None:
        if reply.error is None:
            self._failed_creations = 0
            if reply.serial == self._serial:
                self._add_notes(reply.notes)
            return
        self._pool.kill(worker)
        if reply.serial == self._serial:
            raise reply.error.error() from RuntimeError(f"in the worker:\n{reply.error.traceback}")

    def _check_lock_waits(self) -> None:
        """Add a note on the processes that hold the machine lock for which workers wait."""
        pids = {worker.pid for worker in self._pool.workers}
        for phase, since in (worker.clock.current() for worker in self._pool.workers if worker.busy):
            found = self._waits.check(time.monotonic() - since, pids) if phase == "wait" else ()
            self._add_notes(found)

    def _check_timeouts(self, worker: WorkerProcess) -> list[EvaluationReply]:
        """End a worker that is over a limit, or that died while a child holds its pipe open."""
        phase, since = worker.clock.current()
        limit = self._limits.seconds(phase)
        worker.stalls.look()
        if worker.is_overdue(since, limit):
            return self._end(worker, Failed(_stage(phase), "timeout", f"over {limit:g} s"))
        if why := worker.stalls.exceeds(min(limit, self._limits.worker)):
            return self._end(worker, Lost(_stage(phase), why, f"its worker was {why}"))
        if worker.is_alive():
            return []
        replies = self._on_readable(worker)
        if not replies and worker in self._pool.workers:
            return self._on_exit(worker)
        return replies

    def _on_exit(self, worker: WorkerProcess) -> list[EvaluationReply]:
        """Handle the end of a worker process."""
        stage, before = _stage(worker.clock.current()[0]), time.monotonic()
        end = worker.exit_status()
        self._extend_deadlines(time.monotonic() - before)  # the others' replies were not read meanwhile
        if end.external:
            return self._end(worker, Lost(stage, "killed", end.cause))
        # Where a candidate is under way, its code exits, and would again. Where none is, or an earlier one
        # has lost the device, no candidate is to blame, and the cause may pass.
        if end.exited and (end.unusable or not worker.pending):
            cause = "its device was lost" if end.unusable else end.cause
            return self._end(worker, Lost(stage, "exited", cause))
        return self._end(worker, Failed(stage, "crash", end.detail))

    def _end(self, worker: WorkerProcess, outcome: Failed | Lost) -> list[EvaluationReply]:
        """End a worker with an outcome for its candidate; put the candidates after it back into the queue."""
        phase, since = worker.clock.current()
        seconds = {**worker.clock.seconds(), phase: time.monotonic() - max(since, worker.last_activity)}
        self._pool.kill(worker)
        if worker.creating and worker.serial == self._serial:
            self._count_failed_creation(outcome)
        if not worker.pending:
            return []
        position, *others = worker.pending
        self._queue.put_back(others)
        return self._checked(EvaluationReply(position, outcome, seconds))

    def _count_failed_creation(self, outcome: Failed | Lost) -> None:
        """Count a failed creation of an evaluator; raise unless it was lost and may be tried again."""
        self._failed_creations += 1
        if isinstance(outcome, Failed) or self._failed_creations >= _MAX_FAILED_CREATIONS:
            cause, *_ = outcome.detail.splitlines()
            kind = LostError if isinstance(outcome, Lost) else PlanishError
            raise kind(f"a worker cannot make its evaluator: {cause}") from RuntimeError(outcome.detail)


class ForkedExecutor(LocalExecutor):
    """Evaluates candidates in sandboxed workers that are forked from this process.

    A fork takes some milliseconds, where a new interpreter takes 0.3 s, and has the libraries that are loaded
    here. It is for evaluators whose libraries survive a fork, as LLVM does; those that start threads, such as
    run-time systems of tensors, do not. In all else it is a `LocalExecutor`.
    """

    _forks: ClassVar[bool] = True


def _stage(phase: str) -> Stage:
    return phase if phase in STAGES else "worker"


def pickled(spec: EvaluatorSpec) -> bytes:
    """Pickle a spec; raises PlanishError where it cannot be."""
    try:
        # To a worker, which runs its code anyway; nothing that comes back is a pickle.
        return pickle.dumps(spec, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise PlanishError(
            f"the evaluator's spec cannot be sent to a worker: {error}",
            "Make it of a class or function at the top of a module.",
        ) from error
