"""Pool of forked processes that work through many items.

A program that has threads should not be forked: its pool forks in a process of its own (`WorkProcess`). The
two belong to the same user and exchange pickles; what the children send is plain data, as in every pool.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import pickle
import signal
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, Optional, Protocol, TypeVar

from planish.core import LostError, PlanishError, usable_cores
from planish.sandbox.child import ForkedChild, Send, close_lifeline, forget_output, open_lifeline, wait
from planish.sandbox.confinement import die_with_parent
from planish.sandbox.limits import ExitStatus
from planish.sandbox.plain_data import DataError, ErrorData, FrameReader, dumps, framed, loads, write_all
from planish.sandbox.scratch import Scratch

_NOTE_BYTES = 8192
_LENGTH_BYTES = 4
_MOST_BYTES = _NOTE_BYTES - _LENGTH_BYTES
_PATIENCE = 50
"""Seconds by the clock that one of the processor may take."""


def noted(text: str) -> str:
    """Return a text as a note holds it: a long one is cut, and ends with a digest of the whole."""
    data = text.encode()
    if len(data) <= _MOST_BYTES:
        return text
    digest = hashlib.sha256(data).hexdigest()
    return f"{data[: _MOST_BYTES - len(digest) - 1].decode(errors='ignore')} {digest}"


class Note:
    """A text in memory that a parent and its forked children share, as `noted`."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _NOTE_BYTES)

    def write(self, text: str) -> None:
        """Replace the text."""
        data = noted(text).encode()
        self._memory[: len(data) + _LENGTH_BYTES] = len(data).to_bytes(_LENGTH_BYTES, "little") + data

    def read(self) -> str:
        """Return the text."""
        end = _LENGTH_BYTES + int.from_bytes(self._memory[:_LENGTH_BYTES], "little")
        return self._memory[_LENGTH_BYTES:end].decode(errors="replace")


class Watchdog:
    """Guards the parts of one piece of work, within a child.

    Before each part the child notes what it is about to do, and sets the timers that kill it. What ended
    a child before is not to be done again.

    Args:
        note: shared with the parent.
        refused: what ended a child at this work, as it was noted.
        seconds: of the processor, for one part; by the clock it may be 50 times as many.
    """

    def __init__(self, note: Note, refused: Collection[str], seconds: float) -> None:
        self._note, self._refused, self._seconds = note, frozenset(refused), seconds

    def enter(self, text: str) -> bool:
        """Note what is done now; False if it must not be."""
        if noted(text) in self._refused:
            return False
        # Before the timers: whatever ends the child now finds the right note.
        self._note.write(text)
        self._limit(self._seconds)
        return True

    def leave(self) -> None:
        """Stop the timers."""
        self._limit(0)

    def _limit(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # of the processor: a busy machine refuses nothing
        signal.setitimer(signal.ITIMER_REAL, seconds * _PATIENCE)


Item = TypeVar("Item")
Answer = TypeVar("Answer")

_LOSSES = 3
"""Children killed from outside over one item, after which the item is given up."""


@dataclass(frozen=True)
class ForkLimits:
    """Limits of a forked child.

    Args:
        seconds: of the processor, for each part of the work that the watchdog guards.
        memory_bytes: that a child may have beyond this process's; 0: no limit.
        deaths: number of children that an item may end before it is given up.
    """

    seconds: float = 5.0
    memory_bytes: int = 4 << 30
    deaths: int = 16


@dataclass(frozen=True)
class Done(Generic[Item, Answer]):
    """An item that is over.

    Args:
        item: it.
        answer: what the work gave; None where it was given up.
        refused: the parts of the work that ended a child: a crash, an exit or a hang.
        given_up: how the last child ended, where no answer will come.
    """

    item: Item
    answer: Answer | None
    refused: tuple[str, ...]
    given_up: ExitStatus | None = None

    def check(self) -> None:
        """Raise LostError where others ended each child that had the item: nothing is known of it then."""
        if self.given_up and self.given_up.external:
            raise LostError(
                f"processes are killed from outside: {self.given_up.detail}", "Free memory, and go on."
            )


@dataclass
class _Job(Generic[Item]):
    item: Item
    refused: list[str] = field(default_factory=list[str])
    losses: int = 0


@dataclass
class _Working(Generic[Item]):
    child: ForkedChild
    note: Note
    jobs: deque[_Job[Item]]


class ForkPool(Generic[Item, Answer]):
    """Children that are forked from here, and replaced when they die.

    When a child dies, what it noted is refused from then on, and another child does the item again: so the
    work must be the same each time, the refused parts apart. A child that was killed from outside is to
    blame for nothing.

    Args:
        work: returns an item's answer; it enters its parts with the watchdog.
        answer: the type of answers, None apart: it is sent as plain data and checked by that
            (`planish.sandbox.plain_data`).
        jobs: children side by side.
        at_once: items of one child at most, which then ends: what it leaks is given back.
        limits: of each child.
    """

    def __init__(
        self,
        work: Callable[[Item, Watchdog], Answer],
        answer: Any,
        jobs: int,
        *,
        at_once: int = 1,
        limits: ForkLimits | None = None,
    ) -> None:
        self._work, self._count, self._at_once = work, jobs, at_once
        self._message = tuple[Optional[answer], ErrorData | None]  # noqa: UP045  (None | None is an error)
        self._limits = limits or ForkLimits()
        self._waiting: deque[_Job[Item]] = deque()
        self._children: list[_Working[Item]] = []
        self._scratch = Scratch()
        # Also where the pool is not closed.
        self._end_scratch = weakref.finalize(self, self._scratch.remove)

    @property
    def busy(self) -> bool:
        """Return whether an item is in flight or queued."""
        return bool(self._waiting or self._children)

    @property
    def waiting(self) -> int:
        """Return the number of queued items."""
        return len(self._waiting)

    def add(self, items: Iterable[Item]) -> None:
        """Add items."""
        self._waiting += map(_Job, items)

    def over(self, seconds: float | None = None) -> Iterator[Done[Item, Answer]]:
        """Wait for children up to a timeout in seconds, and yield the items that are over.

        Raises:
            Exception: whatever the work raises.
        """
        self._fill()
        ready = wait([end for working in self._children for end in working.child.ends], seconds)
        for working in [each for each in self._children if not ready.isdisjoint(each.child.ends)]:
            yield from self._on_readable(working)
        self._fill()

    def close(self) -> None:
        """Kill what still runs; harmless when called twice."""
        for working in self._children:
            working.child.kill()
        self._children.clear()
        self._waiting.clear()
        self._end_scratch()

    def _fill(self) -> None:
        while self._waiting and len(self._children) < self._count:
            share = -(-len(self._waiting) // self._count)
            # No more than its share: near the end, all children have something to do.
            count = min(self._at_once, share)
            self._begin(deque(self._waiting.popleft() for _ in range(count)))

    def _begin(self, jobs: deque[_Job[Item]]) -> None:
        note = Note()

        def work(send: Send) -> None:
            for job in jobs:
                # No part is to blame for what ends the child from here to the first one.
                note.write("")
                forget_output()
                send(self._done(job, note))

        child = ForkedChild(work, self._limits.memory_bytes, self._scratch.path)
        self._children.append(_Working(child, note, jobs))

    def _done(self, job: _Job[Item], note: Note) -> bytes:
        """Work on one item, in the child, and return the message with its result."""
        watchdog = Watchdog(note, job.refused, self._limits.seconds)
        try:
            return dumps((self._work(job.item, watchdog), None), self._message)
        except Exception as error:  # noqa: BLE001  (the parent raises it)
            return dumps((None, ErrorData.of(error)), self._message)
        finally:
            watchdog.leave()

    def _on_readable(self, working: _Working[Item]) -> Iterator[Done[Item, Answer]]:
        try:
            for message in working.child.receive():
                yield self._over(working, message)
        except EOFError:
            yield from self._on_exit(working)

    def _over(self, working: _Working[Item], message: bytes) -> Done[Item, Answer]:
        """Read a child's message on the item that it has begun with."""
        try:
            answer, error = loads(message, self._message)
            if not working.jobs:
                raise DataError("it received no further request")
        except DataError as malformed:
            working.child.reject(malformed)
        if error is not None:
            raise error.error() from RuntimeError(f"in a child:\n{error.traceback}")
        job = working.jobs.popleft()
        return Done(job.item, answer, tuple(job.refused))

    def _on_exit(self, working: _Working[Item]) -> Iterator[Done[Item, Answer]]:
        """Record how a child ended; another continues with its items."""
        self._children.remove(working)
        end = working.child.end()
        if working.jobs and self._is_given_up(working.jobs[0], end, working.note.read()):
            job = working.jobs.popleft()
            yield Done(job.item, None, tuple(job.refused), end)
        # To the front and in their order: they were begun before all that waits.
        self._waiting.extendleft(reversed(working.jobs))

    def _is_given_up(self, job: _Job[Item], end: ExitStatus, doing: str) -> bool:
        if end.external:
            job.losses += 1
            return job.losses >= _LOSSES
        job.refused.append(doing)
        # It died outside of the parts, and would again: nothing can be refused.
        return not doing or len(job.refused) >= self._limits.deaths


def forked(
    items: Iterable[Item],
    work: Callable[[Item, Watchdog], Answer],
    answer: Any,
    jobs: int,
    *,
    at_once: int = 16,
    limits: ForkLimits | None = None,
) -> Generator[Done[Item, Answer]]:
    """Do work on each item, in a pool of forked children that ends with the generator.

    Args:
        items: taken as children become free.
        work, answer, at_once, limits: as `ForkPool` takes them.
        jobs: children side by side; 0: one for each core.

    Yields:
        Items that are over, in any order.

    Raises:
        Exception: whatever the work raises.
    """
    jobs = jobs or usable_cores()
    left, ahead = iter(items), jobs * at_once
    with closing(ForkPool(work, answer, jobs, at_once=at_once, limits=limits)) as pool:
        pool.add(islice(left, ahead))
        while pool.busy:
            yield from pool.over()
            pool.add(islice(left, ahead - pool.waiting))


class Forked(Protocol):
    """Does work on items in forked children: `forked` in those of this process, a cluster on its hosts."""

    def __call__(
        self,
        items: Iterable[Item],
        work: Callable[[Item, Watchdog], Answer],
        answer: Any,
        jobs: int,
        *,
        at_once: int = 16,
    ) -> Generator[Done[Item, Answer]]:
        """Yield items that are over; see `forked`."""
        ...


def in_child(
    work: Callable[[], Answer], answer: Any, limits: ForkLimits | None = None
) -> Answer | ExitStatus:
    """Do one piece of work in a forked child; return its answer, or how the child ended.

    Args:
        work: what is done.
        answer: the type of its answer, as `ForkPool` takes it.
        limits: of the child.

    Raises:
        Exception: whatever the work raises.
    """

    def watched(_: None, watchdog: Watchdog) -> tuple[Answer]:
        watchdog.enter("work")
        # None would mean that it was given up.
        return (work(),)

    (done,) = forked([None], watched, tuple[answer], 1, limits=replace(limits or ForkLimits(), deaths=1))
    if done.answer is None:
        assert done.given_up is not None
        return done.given_up
    return done.answer[0]


# In a process of its own

_MAIN = "import sys; from planish.sandbox.fork_pool import do_work; do_work(int(sys.argv[1]))"
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class ForkedWork:
    """Work on items, done by `planish.sandbox.fork_pool.forked`.

    Args:
        work: returns an item's answer.
        answer: the type of answers.
        jobs: children side by side; 0: one for each core.
        at_once: items of one child at most.
    """

    work: Callable[[Any, Watchdog], Any]
    answer: Any
    jobs: int
    at_once: int

    @property
    def processes(self) -> int:
        """Return the number of children side by side on this machine."""
        return self.jobs or usable_cores()


@dataclass(frozen=True)
class WorkReply:
    """Reply on an item.

    Args:
        position: the number that the item was sent with.
        answer: None where it was given up.
        refused: the parts of the work that ended a child.
        given_up: how the last child ended, where no answer will come.
    """

    position: int
    answer: Any
    refused: tuple[str, ...]
    given_up: ExitStatus | None


class WorkProcess:
    """A process that does work, batch after batch, until it is closed or this process ends.

    Args:
        work: what it does; it is pickled.
    """

    def __init__(self, work: ForkedWork) -> None:
        watched, self._lifeline = open_lifeline()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _MAIN, str(watched)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            pass_fds=[watched],
            process_group=0,
        )
        os.close(watched)
        self._frames = FrameReader()
        # A thread writes, since the process reads the next batch once it has done this one.
        self._writer = ThreadPoolExecutor(1)
        self._send(work)

    def send(self, batch: Sequence[tuple[int, Any]]) -> None:
        """Have numbered items done, after those that were sent before."""
        if batch:
            self._send(batch)

    def replies(self, seconds: float) -> Sequence[WorkReply]:
        """Return the replies that have come, after a timeout in seconds at the latest.

        Raises:
            PlanishError: whatever the work raises.
            LostError: the process has ended.
        """
        assert self._process.stdout is not None
        output, found = self._process.stdout.fileno(), list[WorkReply]()
        if not wait([output], seconds):
            return found
        if not (data := os.read(output, _READ_BYTES)):
            raise LostError("the process that does the work has ended")
        for body in self._frames.feed(data):
            reply = pickle.loads(body)
            if isinstance(reply, PlanishError):
                raise reply
            found.append(reply)
        return found

    def close(self) -> None:
        """End the process; its children end with it."""
        self._process.kill()
        self._process.wait()
        close_lifeline(self._lifeline)
        self._writer.shutdown()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _send(self, command: object) -> None:
        assert self._process.stdin is not None
        self._writer.submit(_write, self._process.stdin.fileno(), pickle.dumps(command))


def _write(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError):  # the process has ended, which `replies` reports
        write_all(descriptor, data)


def do_work(lifeline: int) -> None:
    """Do the work that standard input asks for, a batch at a time, until its end.

    Args:
        lifeline: the descriptor at whose end this process ends; see `die_with_parent`.
    """
    die_with_parent(lifeline)
    replies = os.dup(1)
    os.dup2(2, 1)
    with open(0, "rb", closefd=False) as commands:
        try:
            work: ForkedWork = pickle.load(commands)
            while True:
                batch: Sequence[tuple[int, Any]] = pickle.load(commands)
                numbers = {id(item): number for number, item in batch}
                items = [item for _, item in batch]
                for done in forked(items, work.work, work.answer, work.jobs, at_once=work.at_once):
                    reply = WorkReply(numbers[id(done.item)], done.answer, done.refused, done.given_up)
                    write_all(replies, framed(pickle.dumps(reply)))
        except EOFError:
            return
        except PlanishError as error:
            write_all(replies, framed(pickle.dumps(error)))
