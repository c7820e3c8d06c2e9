"""Candidates in flight: evaluated by this run's executor, or leased by another run for the same task.

Several processes may search for one task with one store. Each candidate is measured by one of them, and the
others receive its outcome from the store.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from planish.core import Candidate, Evaluation, Executor, StoreError, Trial
from planish.tuning.recorder import Recorder, TrialRecorder

if TYPE_CHECKING:
    from planish.store import Store


class InFlight:
    """The candidates that an executor evaluates just now.

    Args:
        executor: has nothing under way.

    Attributes:
        startup_s: from the first submission until the first answer; 0 while there is none.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._open: dict[str, Candidate] = {}
        self._deadline = math.inf
        self._begun: float | None = None
        self.startup_s = 0.0

    @property
    def count(self) -> int:
        """Return how many have no answer yet."""
        return len(self._open)

    @property
    def candidates(self) -> list[Candidate]:
        """Those that have no answer yet, in the order of submission."""
        return list(self._open.values())

    @property
    def free_slots(self) -> int:
        """Return how many more the executor has capacity for; one at least where it has nothing to do."""
        return max(self._executor.capacity - self.count, 0 if self._open else 1)

    @property
    def wants_more(self) -> bool:
        """Return whether half of the capacity is free; asking for one candidate at a time would cost more."""
        return 2 * self.free_slots >= self._executor.capacity

    def submit(self, candidates: Sequence[Candidate], deadline: float) -> None:
        """Have candidates evaluated; see `planish.core.Executor.submit`."""
        self._begun = self._begun or time.monotonic()
        self._deadline = deadline
        self._executor.submit(candidates, deadline)
        self._open.update((candidate.hash, candidate) for candidate in candidates)

    def extend(self, deadline: float) -> None:
        """Set another deadline for what is under way."""
        if self._open and deadline != self._deadline:
            self.submit((), deadline)

    def results(self) -> Iterator[Evaluation]:
        """Yield evaluations as they end, until all are there or at the deadline."""
        for evaluation in self._executor.results():
            if self._begun is not None and not self.startup_s:
                self.startup_s = time.monotonic() - self._begun
            del self._open[evaluation.candidate.hash]
            yield evaluation
        self._open.clear()  # those that missed the deadline were given up

    def cancel(self) -> None:
        """Abandon the candidates that have no result yet."""
        self._open.clear()
        self._executor.cancel()


POLL_S = 0.05
"""How often the store is asked for what another run is measuring."""
RENEWED_S = 30.0
"""How often leases are renewed: well before they end by themselves."""


class Pending:
    """Candidates that wait to be measured, all of them by this search.

    Args:
        recorder: keeps what became of candidates.

    Attributes:
        pending: what is neither known nor measured by this search.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.pending: list[Candidate] = []

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Have these measured, after all others; each gets its index."""
        for candidate in candidates:
            self._recorder.assign_index(candidate)
            self.pending.append(candidate)

    def acquire(self, in_flight: InFlight) -> tuple[list[Trial], list[Candidate]]:
        """Take what waits no longer.

        Args:
            in_flight: what this search measures already.

        Returns:
            What others have measured by now, and what this search is to measure.
        """
        del in_flight
        mine, self.pending = self.pending, []
        return [], mine

    def renewed(self) -> AbstractContextManager[None]:
        """Keep within the block what this search has leased."""
        return nullcontext()

    def release(self) -> None:
        """Let go of what was leased and will not be measured here."""


class Leases(Pending):
    """Leases of candidates: of what several runs propose, each is measured by one of them.

    Args:
        recorder: keeps what became of candidates.
        store: where runs see what the others measure.
    """

    def __init__(self, recorder: TrialRecorder, store: Store) -> None:
        super().__init__(recorder)
        self._recorder, self._store = recorder, store
        self._next_look = 0.0
        self._handed_out = -POLL_S
        self._leased = False

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Have these measured, after all others, and look at once for what others know of them."""
        before = len(self.pending)
        super().add(candidates)
        if len(self.pending) > before:
            self._next_look = 0.0

    def acquire(self, in_flight: InFlight) -> tuple[list[Trial], list[Candidate]]:
        """Look what waits no longer.

        Args:
            in_flight: what this run measures already; its leases are renewed.

        Returns:
            What other runs have measured by now, and what this run is to measure: no other run has it.
        """
        if time.monotonic() < self._next_look:
            return [], []
        self._next_look = time.monotonic() + POLL_S
        mine = self._lease(in_flight)
        # Asked after the lease: another run may have let them go just before, with an outcome.
        found = self._recall(mine)
        found += self._recall(self.pending)
        return found, [candidate for candidate in mine if not self._recorder.has(candidate)]

    @contextmanager
    def renewed(self) -> Generator[None]:
        """Renew within the block what this run has leased: to measure it may take longer than a lease lasts.

        A thread does it, since the loop hears nothing while it waits for an answer.
        """
        over = Event()
        thread = Thread(target=self._renew_until, args=[over], daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            # Else it might renew what the loop has released meanwhile.
            thread.join()

    def _renew_until(self, over: Event) -> None:
        while not over.wait(RENEWED_S):
            with suppress(StoreError):  # the loop will see it, too
                self._store.renew_leases(self._recorder.run_id)

    def release(self) -> None:
        """Let go of what was leased and will not be measured here, so that no other run waits for it."""
        if self._leased:
            self._leased = False
            with suppress(StoreError):  # leases end by themselves, too
                self._store.lease(self._recorder.run_id, (), 0)

    def _lease(self, in_flight: InFlight) -> list[Candidate]:
        if not self.pending:
            return []
        mine = self._free(in_flight) if self._is_needless() else self._leased_of(in_flight)
        names = {candidate.hash for candidate in mine}
        self.pending = [candidate for candidate in self.pending if candidate.hash not in names]
        if mine:
            self._handed_out = time.monotonic()
        return mine

    def _is_needless(self) -> bool:
        """Return whether no other run shares the store, and results come too fast for leases to pay.

        A run that begins meanwhile is seen at the next answer. Leases would take a tenth of such a search.
        """
        return time.monotonic() - self._handed_out < POLL_S and not self._store.is_shared

    def _free(self, in_flight: InFlight) -> list[Candidate]:
        self.release()
        return self.pending[: in_flight.free_slots]

    def _leased_of(self, in_flight: InFlight) -> list[Candidate]:
        held = in_flight.candidates
        wanted = [*held, *self.pending]
        with self._recorder.timed("store"):
            leased = self._store.lease(self._recorder.run_id, wanted, len(held) + in_flight.free_slots)
        self._leased = True
        names = {candidate.hash for candidate in leased}
        return [candidate for candidate in self.pending if candidate.hash in names]

    def _recall(self, candidates: list[Candidate]) -> list[Trial]:
        found = self._recorder.recall(candidates)
        self.pending = [candidate for candidate in self.pending if not self._recorder.has(candidate)]
        return found
