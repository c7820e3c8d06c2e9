"""Measuring host of a Ray cluster: what runs in its actor, and the messages between it and the head."""

from __future__ import annotations

import os
import pickle
import platform
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from planish.core import (
    Candidate,
    EvaluatorSpec,
    LostError,
    PlanishError,
    Target,
    TargetError,
    usable_cores,
)
from planish.measure.executors import LocalExecutor
from planish.measure.machine_lock import exclusive
from planish.sandbox.fork_pool import ForkedWork, WorkProcess, WorkReply
from planish.sandbox.limits import Limits
from planish.sandbox.protocol import HOST, EvaluationReply
from planish.sandbox.scratch import remove_shared_folder
from planish.sandbox.shared_cache import from_elsewhere

THREADS = "OMP_NUM_THREADS"
"""Ray sets it to 1 in its actors; the measured program is to have what it has on the head."""


@dataclass(frozen=True)
class Versions:
    """Versions that the head and its hosts must have in common.

    Args:
        python: of the language, such as "3.11"; pickles of one may be unreadable to another.
        planish: of this package.
    """

    python: str = ".".join(platform.python_version_tuple()[:2])
    planish: str = version("planish")

    def __str__(self) -> str:
        return f"planish {self.planish} on Python {self.python}"


CANARY_S = 15.0
"""Seconds between two times that a host measures the canary, while it evaluates."""
_CANARY_BYTES, _CANARY_REPEATS = 4 << 20, 5
_CANARY_PATIENCE_S = 1.0  # the head waits meanwhile


def canary_s() -> float:
    """Time a computation that is always the same, on a machine that times nothing else meanwhile; in seconds.

    It copies and hashes some memory, so that it takes longer on a processor that is slowed down or shares its
    caches and its memory with other work. The least of a few is returned.
    """
    data = bytes(_CANARY_BYTES)
    found = list[float]()
    with exclusive(patience_s=_CANARY_PATIENCE_S):
        for _ in range(_CANARY_REPEATS):
            began = time.perf_counter()
            sha256(bytearray(data))
            found.append(time.perf_counter() - began)
    return min(found)


@dataclass(frozen=True)
class Description:
    """Description of a host by itself.

    Args:
        name: of the machine.
        versions: of what it runs.
        niceness: of the actor's process, which the measured programs inherit.
        pid: of the actor's process.
    """

    name: str
    versions: Versions
    niceness: int
    pid: int


@dataclass(frozen=True)
class Requirements:
    """Requirements of a task on a host.

    Args:
        target: of the task; None where any will do.
        describe: returns the target of the machine that calls it.
        files: that the evaluators read.
    """

    target: Target | None = None
    describe: Callable[[], Target] | None = None
    files: Sequence[str] = ()

    def obstacle(self) -> str:
        """Return why this machine cannot measure; empty where it can."""
        if missing := [file for file in self.files if not os.path.exists(file)]:  # noqa: PTH110
            return f"it has no {missing[0]}, which the evaluator reads"
        if self.target is None or self.describe is None:
            return ""
        try:
            own = self.describe()
        except TargetError as error:
            return error.message
        return _difference(own, self.target)


def _difference(own: Target, wanted: Target) -> str:
    """Return the first thing in which two targets differ; empty where they are the same."""
    pairs = {
        "processor": (own.processor, wanted.processor),
        "features": (sorted(own.features), sorted(wanted.features)),
        "cores": (own.cores, wanted.cores),
        "toolchain": (dict(own.toolchain), dict(wanted.toolchain)),
    }
    for name, (here, there) in pairs.items():
        if here != there:
            return f"its target differs from the task's: {name} {here}, not {there}"
    return ""


@dataclass(frozen=True)
class Message:
    """Candidates or other items for a host, and when it is to report.

    Args:
        key: of the executor.
        batch: items, each with a number.
        left_s: seconds after which all that is under way is given up.
        wait_s: seconds to wait for the first result.
        report_s: seconds for which results are collected, unless nothing is left to do before.
    """

    key: int
    batch: Sequence[tuple[int, Any]]
    left_s: float
    wait_s: float
    report_s: float


@dataclass(frozen=True)
class Report:
    """Outcomes on a host since the last report.

    Args:
        replies: by the numbers that the head gave the candidates.
        capacity: as of an executor.
        notes: of its evaluators, so far.
        losses: evaluations that were lost with their workers, so far, by cause.
        error: the evaluator cannot be made.
        canary_s: seconds of the canary, where it was measured since the last report.
    """

    replies: Sequence[EvaluationReply | WorkReply] = ()
    capacity: int = 1
    notes: Sequence[str] = ()
    losses: Counter[str] = field(default_factory=Counter[str])
    error: PlanishError | None = None
    canary_s: float | None = None


_CAPACITY_MOST = 256
"""Items asked for at most to fill the time until the next report: Ray holds small messages in memory."""


class _Room(ABC):
    """Share of this host that an executor of the head has."""

    times = True
    """If true, something is timed, so that the speed of the host matters."""

    def __init__(self) -> None:
        self._unanswered = 0
        self._longest_s = 0.0  # between two results, lately

    def exchange(self, message: Message) -> Report:
        """Take items, and return results."""
        last = began = time.monotonic()
        # Near the deadline, what is not reported would be lost.
        until = began + min(message.report_s, message.left_s / 2)
        self._unanswered += len(message.batch)
        self._longest_s *= 0.75
        report = self._work(message.batch, message.left_s, message.wait_s)
        replies = list[EvaluationReply | WorkReply]()
        while report.replies:
            now = time.monotonic()
            self._longest_s = max(self._longest_s, now - last)
            self._unanswered -= len(report.replies)
            replies += report.replies
            if not self._unanswered or now >= until:
                break
            report, last = self._work((), message.left_s - (now - began), until - now), now
        # Enough to be busy until the next items come, where all are short.
        count = int(min(2 * message.report_s / max(self._longest_s, 1e-6), _CAPACITY_MOST))
        return replace(report, replies=replies, capacity=max(report.capacity, count))

    @abstractmethod
    def _work(self, batch: Sequence[tuple[int, Any]], left_s: float, wait_s: float) -> Report:
        """Take numbered items; return the next results, after a timeout in seconds at the latest."""

    def cancel(self) -> None:
        """Abandon what is under way."""
        self._unanswered = 0

    @abstractmethod
    def close(self) -> None:
        """End its processes."""


class _EvaluationRoom(_Room):
    """A local executor, and the numbers of the candidates that it evaluates."""

    def __init__(self, spec: EvaluatorSpec, workers: int, limits: Limits | None) -> None:
        super().__init__()
        self.executor = LocalExecutor(spec, workers=min(workers, usable_cores()), limits=limits)
        self._numbers: defaultdict[Candidate, deque[int]] = defaultdict(deque)

    def _work(self, batch: Sequence[tuple[int, Candidate]], left_s: float, wait_s: float) -> Report:
        executor, replies = self.executor, list[EvaluationReply]()
        for number, candidate in batch:
            self._numbers[candidate].append(number)
        executor.submit([candidate for _, candidate in batch], time.monotonic() + left_s)
        with closing(executor.results(wait_s)) as results:
            for found in results:
                numbers = self._numbers[found.candidate]
                replies.append(EvaluationReply(numbers.popleft(), found.outcome, found.seconds, found.host))
                if not numbers:
                    del self._numbers[found.candidate]
                if not executor.has_result:
                    break
        return Report(replies, executor.capacity, executor.notes, Counter(executor.losses))

    def cancel(self) -> None:
        super().cancel()
        self.executor.cancel()
        self._numbers.clear()

    def close(self) -> None:
        self.executor.close()


class _WorkRoom(_Room):
    """A process that does work in forked children: this one has threads of Ray, and should not be forked."""

    times = False

    def __init__(self, work: ForkedWork) -> None:
        super().__init__()
        self._spec, self._process = work, WorkProcess(work)

    def _work(self, batch: Sequence[tuple[int, Any]], left_s: float, wait_s: float) -> Report:
        del left_s
        self._process.send(batch)
        return Report(self._process.replies(wait_s), 2 * self._spec.processes * self._spec.at_once)

    def cancel(self) -> None:
        super().cancel()
        self.close()
        self._process = WorkProcess(self._spec)

    def close(self) -> None:
        self._process.close()


class MeasuringHost:
    """Evaluates on one machine for the head; an actor of one thread.

    Every executor of the head has a local executor of its own here, known by a number. Timed runs exclude
    each other by the machine's lock, as in any other process of planish.

    Args:
        threads: the head's `OMP_NUM_THREADS`; None where it has none.
    """

    def __init__(self, threads: str | None) -> None:
        os.environ.pop(THREADS, None)
        if threads is not None:
            os.environ[THREADS] = threads
        self._rooms: dict[int, _Room] = {}
        self._next_canary = 0.0

    def describe(self) -> Description:
        """Describe this host."""
        return Description(HOST, Versions(), os.nice(0), os.getpid())

    def begin(
        self, key: int, spec: bytes, workers: int, limits: Limits | None, required: bytes
    ) -> PlanishError | str:
        """Start an executor, or have it evaluate by another spec from now on.

        Args:
            key: of the executor.
            spec: pickled.
            workers: processes at most; there are no more than cores.
            limits: as of a `LocalExecutor`.
            required: pickled requirements.

        Returns:
            An error of the spec, or why this host cannot evaluate by it; empty where it can.
        """
        try:
            if obstacle := pickle.loads(required).obstacle():
                return obstacle
            room = self._rooms.get(key)
            with from_elsewhere():
                made = pickle.loads(spec)
            if isinstance(made, ForkedWork):
                self._rooms[key] = _WorkRoom(made)
            elif isinstance(room, _EvaluationRoom):
                room.executor.serve(made)
            else:
                self._rooms[key] = _EvaluationRoom(made, workers, limits)
        except TargetError as error:
            return error.message
        except PlanishError as error:
            return error
        except (ImportError, AttributeError) as error:  # a plug-in that is not installed here
            return f"it cannot read the evaluator: {error}"
        return ""

    def exchange(self, message: bytes) -> bytes:
        """Take candidates or other items, and return a report, pickled as the message is."""
        return pickle.dumps(self._exchange(pickle.loads(message)))

    def _exchange(self, message: Message) -> Report:
        try:
            room = self._rooms[message.key]
            report = room.exchange(message)
            if room.times and time.monotonic() >= self._next_canary:
                report = replace(report, canary_s=canary_s())
                self._next_canary = time.monotonic() + CANARY_S
            return report
        except LostError:
            raise
        except PlanishError as error:
            self.cancel(message.key)
            return Report(error=error)

    def target(self, describe: bytes) -> Target | str:
        """Return this machine's target, or why it has none; `describe` is pickled."""
        try:
            return pickle.loads(describe)()
        except TargetError as error:
            return error.message
        except (ImportError, AttributeError) as error:  # a plug-in that is not installed here
            return f"it cannot read the program: {error}"

    def cancel(self, key: int) -> None:
        """Abandon what an executor has under way."""
        if room := self._rooms.get(key):
            room.cancel()

    def end(self, key: int) -> None:
        """End an executor; harmless where there is none."""
        if room := self._rooms.pop(key, None):
            room.close()

    def leave(self) -> None:
        """End all executors, and remove this process's temporary files."""
        for key in [*self._rooms]:
            self.end(key)
        remove_shared_folder()
