"""Searcher whose candidates are submitted by clients, in a queue that is fair between them."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Condition
from typing import Any, ClassVar, TypeVar

from planish.core import Candidate, Searcher, Space, Trial


class FullError(Exception):
    """A client has as many candidates waiting as it may have."""


FutureT = TypeVar("FutureT", bound="Future[Any]")


def uncancelable(future: FutureT) -> FutureT:
    """Return a future that a request which is given up does not cancel."""
    future.set_running_or_notify_cancel()
    return future


class Submissions(Searcher):
    """Proposes what clients submit, one of each client in turn.

    The engine asks in a thread of its own, and waits there while nothing is submitted. `end` lets its search
    end once all that is under way is measured; what is submitted later waits for the next search.

    Args:
        waiting: candidates of one client that may wait at a time.
        on_end: called when the search ends because of `end`.
    """

    needs: ClassVar[type] = Space
    library: ClassVar[str | None] = None

    def __init__(self, waiting: int, on_end: Callable[[], None] = lambda: None) -> None:
        self._most, self._on_end = waiting, on_end
        self._changed = Condition()
        self._queues: OrderedDict[str, deque[Candidate]] = OrderedDict()
        self._futures: dict[str, Future[Trial]] = {}
        self._clients: dict[str, str] = {}
        self._asked: dict[str, Candidate] = {}
        self._ending = False
        self._idle_s = 0.0

    def submit(self, client: str, candidate: Candidate) -> Future[Trial]:
        """Have a candidate measured; return what becomes of it.

        A candidate that several clients submit is measured once.

        Raises:
            FullError: as many candidates of the client wait as may.
        """
        with self._changed:
            known = self._futures.get(candidate.hash)
            if known is not None:
                return known
            queue = self._queues.setdefault(client, deque())
            if len(queue) >= self._most:
                raise FullError
            queue.append(candidate)
            found = self._futures[candidate.hash] = uncancelable(Future[Trial]())
            self._clients[candidate.hash] = client
            self._changed.notify_all()
            return found

    def waiting_of(self, client: str) -> int:
        """Return how many candidates of a client have no outcome yet."""
        with self._changed:
            return sum(each == client for each in self._clients.values())

    def client(self, candidate: Candidate) -> str:
        """Return the client that submitted a candidate."""
        return self._clients.get(candidate.hash, "")

    def wait(self, seconds: float) -> bool:
        """Wait until a candidate is submitted, or until `end` is called; return whether one is there."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._has_queued(), seconds)
            return self._has_queued()

    def begin(self) -> None:
        """Prepare for a search: what the last one did not measure comes first."""
        with self._changed:
            self._ending, self._idle_s = False, 0.0
            if self._asked:
                self._queues[""] = deque(self._asked.values())
                self._queues.move_to_end("", last=False)
                self._asked.clear()

    def end(self) -> None:
        """Let the search end once nothing is under way."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Answer all that waits with an error."""
        with self._changed:
            futures = list(self._futures.values())
            self._futures.clear()
            self._clients.clear()
            self._queues.clear()
            self._asked.clear()
        for future in futures:
            future.set_exception(error)

    def ask(self, n: int) -> Sequence[Candidate]:
        """Return up to n submitted candidates; waits while nothing is submitted and nothing is under way."""
        begun = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._asked or self._has_queued())
            self._idle_s += time.monotonic() - begun
            found = list[Candidate]()
            while not self._ending and len(found) < n and self._has_queued():
                client, queue = self._queues.popitem(last=False)
                found.append(queue.popleft())
                if queue:
                    self._queues[client] = queue
            self._asked.update((each.hash, each) for each in found)
            if not self._asked:
                self._on_end()
            return found

    def tell(self, trials: Sequence[Trial]) -> None:
        """Answer those who wait for these trials."""
        for trial in trials:
            with self._changed:
                self._asked.pop(trial.candidate.hash, None)
                future = self._futures.pop(trial.candidate.hash, None)
                self._clients.pop(trial.candidate.hash, None)
            if future is not None:
                future.set_result(trial)

    @property
    def idle_s(self) -> float:
        """Return the seconds that `ask` waited for clients in this search."""
        return self._idle_s

    def _has_queued(self) -> bool:
        return any(self._queues.values())
