"""The workers of an executor: hired, listened to, fired."""

import selectors
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

from planish.core import PlanishError
from planish.isolation.cage import Cage
from planish.isolation.dial import Dial
from planish.isolation.guard import WorkerClock
from planish.isolation.process import WorkerProcess
from planish.isolation.wire import Setup


class WorkerPool:
    """So many worker processes, once `complete` was called.

    Args:
        count: how many.
        memory_bytes: what each may have beyond its start.
        clock: makes the clock that a worker's evaluators are given; it is pickled.

    Attributes:
        count: how many there shall be.
        workers: those who are there.
    """

    def __init__(self, count: int, memory_bytes: int, clock: Callable[[Dial], WorkerClock]) -> None:
        self.count = count
        self.workers: list[WorkerProcess] = []
        self._memory_bytes = memory_bytes
        self._clock = clock
        self._selector = selectors.DefaultSelector()

    def complete(self) -> None:
        """Replace those who are gone.

        Raises:
            PlanishError: the system starts no more processes.
        """
        for worker in [w for w in self.workers if not w.busy and not w.is_alive()]:
            self.fire(worker)
        while len(self.workers) < self.count:
            try:
                self._hire()
            except OSError as error:
                raise PlanishError(
                    f"a worker cannot be started: {error}", "Ask for fewer workers."
                ) from error

    def retire(self, lifetime: int) -> None:
        """Let go of those who have evaluated so many candidates, once they are idle."""
        for worker in [w for w in self.workers if not w.busy and w.evaluated >= lifetime]:
            self.fire(worker)

    def keep(self, cage: Cage | None) -> None:
        """Let go of those who made an evaluator in another cage: nobody leaves the one in which he is."""
        for worker in [w for w in self.workers if w.serial and w.cage != cage]:
            self.fire(worker)

    def speaking(self, seconds: float) -> Iterator[WorkerProcess]:
        """Give the workers who say something, or end, within so many seconds.

        What they print is taken on the way. A worker may be fired meanwhile.
        """
        for key, _ in self._selector.select(seconds):
            worker: WorkerProcess = key.data
            # Fired while the events of this round were handled.
            if worker not in self.workers:
                continue
            if key.fd == worker.replies:
                yield worker
            elif not worker.drain():
                self._selector.unregister(worker.errors)

    def fire(self, worker: WorkerProcess) -> None:
        """End a worker and all that it started."""
        for descriptor in (worker.replies, worker.errors):
            with suppress(KeyError):  # one that reached its end is no longer listened to
                self._selector.unregister(descriptor)
        self.workers.remove(worker)
        worker.kill()

    def close(self) -> None:
        """Let idle workers end by themselves, and end the others."""
        for worker in self.workers:
            # All before any is waited for, so that they end side by side.
            worker.dismiss()
        for worker in list(self.workers):
            if not worker.busy:
                worker.leave()
            self.fire(worker)
        self._selector.close()

    def _hire(self) -> None:
        worker = WorkerProcess(Setup(tuple(sys.path), self._memory_bytes, self._clock))
        self.workers.append(worker)
        self._selector.register(worker.replies, selectors.EVENT_READ, worker)
        self._selector.register(worker.errors, selectors.EVENT_READ, worker)
