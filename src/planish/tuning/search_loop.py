"""Search loop: ask, submit, record and report.

`SearchLoop` asks a searcher for as many candidates as the executor has capacity for, and reports to it each
outcome as it comes. It needs no store: searches that keep no run use it too.

Several processes may search for one task with one store. Each candidate is measured by one of them, by a
lease (`LeasedCandidates`), and the others receive its outcome from the store.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING

from planish.core import Candidate, Evaluation, Executor, Failed, Searcher, StoreError, Trial, gc_paused
from planish.tuning.budget import SearchLimits
from planish.tuning.recorder import Recorder, TrialRecorder

if TYPE_CHECKING:
    from planish.store import Store


TOGETHER_MOST = 64
"""Evaluations that are stored in one transaction at most."""


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

    def results(self) -> Iterator[Sequence[Evaluation]]:
        """Yield evaluations as they end, those that are there at one time together, until all have ended."""
        together = list[Evaluation]()
        for evaluation in self._executor.results():
            if self._begun is not None and not self.startup_s:
                self.startup_s = time.monotonic() - self._begun
            del self._open[evaluation.candidate.hash]
            together.append(evaluation)
            if len(together) == TOGETHER_MOST or not self._executor.has_result:
                yield together
                together = []
        self._open.clear()  # those that missed the deadline were given up

    def cancel(self) -> None:
        """Abandon the candidates that have no result yet."""
        self._open.clear()
        self._executor.cancel()


POLL_S = 0.05
"""Interval at which the store is asked for what another run is measuring."""


class PendingCandidates:
    """Candidates that wait to be measured, all of them by this search.

    Args:
        recorder: keeps what became of candidates.

    Attributes:
        candidates: what is neither known nor measured by this search.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.candidates: list[Candidate] = []

    def add(self, candidates: Iterable[Candidate]) -> None:
        """Have these measured, after all others; each gets its index."""
        for candidate in candidates:
            self._recorder.assign_index(candidate)
            self.candidates.append(candidate)

    def acquire(self, in_flight: InFlight) -> tuple[list[Trial], list[Candidate]]:
        """Lease pending candidates, and fetch the outcomes that other runs have stored.

        Args:
            in_flight: what this search measures already.

        Returns:
            What others have measured by now, and what this search is to measure.
        """
        del in_flight
        mine, self.candidates = self.candidates, []
        return [], mine

    def renewed(self) -> AbstractContextManager[None]:
        """Keep within the block what this search has leased."""
        return nullcontext()

    def release(self) -> None:
        """Let go of what was leased and will not be measured here."""


class LeasedCandidates(PendingCandidates):
    """Candidates that wait for a lease: of what several runs propose, each is measured by one of them.

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
        before = len(self.candidates)
        super().add(candidates)
        if len(self.candidates) > before:
            self._next_look = 0.0

    def acquire(self, in_flight: InFlight) -> tuple[list[Trial], list[Candidate]]:
        """Lease pending candidates, and fetch the outcomes that other runs have stored.

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
        found += self._recall(self.candidates)
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
        while not over.wait(self._store.lease_s / 4):
            with suppress(StoreError):  # the loop will see it, too
                self._store.renew_leases(self._recorder.run_id)

    def release(self) -> None:
        """Let go of what was leased and will not be measured here, so that no other run waits for it."""
        if self._leased:
            self._leased = False
            with suppress(StoreError):  # leases end by themselves, too
                self._store.lease(self._recorder.run_id, (), 0)

    def _lease(self, in_flight: InFlight) -> list[Candidate]:
        if not self.candidates:
            return []
        mine = self._free(in_flight) if self._is_needless() else self._leased_of(in_flight)
        names = {candidate.hash for candidate in mine}
        self.candidates = [candidate for candidate in self.candidates if candidate.hash not in names]
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
        return self.candidates[: in_flight.free_slots]

    def _leased_of(self, in_flight: InFlight) -> list[Candidate]:
        held = in_flight.candidates
        wanted = [*held, *self.candidates]
        with self._recorder.timed("store"):
            leased = self._store.lease(self._recorder.run_id, wanted, len(held) + in_flight.free_slots)
        self._leased = True
        names = {candidate.hash for candidate in leased}
        return [candidate for candidate in self.candidates if candidate.hash in names]

    def _recall(self, candidates: list[Candidate]) -> list[Trial]:
        found = self._recorder.recall(candidates)
        self.candidates = [candidate for candidate in self.candidates if not self._recorder.has(candidate)]
        return found


REPEATS_MAX = 3_200
"""Proposals in a row that are none for the first time, after which a search is at its end."""

REJECTED_MAX = 10_000
"""Proposals in a row that the user's constraint rejects, after which a search is at its end."""
_REJECTED = Failed("transform", "rejected", "by the constraint where=")
"""The outcome of a rejected candidate for its searcher; no store has it."""

REPLAYED = 64
"""Stored trials of a resumed run that are proposed again at once: no evaluation is waited for."""

Ask = Callable[[int], Sequence[Candidate]]
"""Proposes up to a number of candidates; none where there is nothing to propose now."""


class SearchLoop:
    """One search.

    Outcomes are passed on as they come, in any order; a searcher that keeps to its protocol proposes the same
    in each of them.

    Args:
        searcher: proposes candidates.
        in_flight: the evaluations under way.
        pending: what waits to be measured, here or by another run.
        recorder: keeps what became of it.
        tracker: when the search ends.
    """

    def __init__(
        self,
        searcher: Searcher,
        in_flight: InFlight,
        pending: PendingCandidates,
        recorder: Recorder,
        tracker: SearchLimits,
    ) -> None:
        self._searcher, self._in_flight, self._pending = searcher, in_flight, pending
        self._recorder, self._budget = recorder, tracker
        self._unreported: Counter[str] = Counter()
        self._open: set[str] = set()
        self._proposed: set[str] = set()
        self._repeats = self._rejected = 0
        self._replay = ExitStack()

    def search(self) -> None:
        """Ask the searcher until the budget is spent or it is at its end."""
        with self._replay:
            self._replay.enter_context(gc_paused())
            self._evaluate(self._ask)

    def conclude(self) -> None:
        """Measure what the searcher concludes once the budget is spent; a second Ctrl-C leaves it out."""
        self._budget.concluding = True
        for candidate in self._searcher.conclude():
            if not self._recorder.rejects(candidate):
                self.measure(candidate)
        self._budget.concluding = False

    def measure(self, candidate: Candidate) -> Trial | None:
        """Measure what the searcher need not have proposed; None where the search ends before."""
        left = [candidate]
        self._evaluate(lambda _: [left.pop()] if left else ())
        return self._recorder.trial(candidate)

    def _evaluate(self, ask: Ask) -> None:
        """Evaluate what is proposed, until nothing is under way and nothing more is proposed."""
        try:
            with self._pending.renewed():
                self._run(ask)
        finally:
            self._in_flight.cancel()
            self._pending.release()

    def _run(self, ask: Ask) -> None:
        while self._fill(ask):
            for evaluations in self._in_flight.results():
                for trial in self._recorder.record_all(evaluations):
                    self._tell(trial)
                if self._budget.is_reached():
                    return
                # Once something is measured there is a deadline, for what is under way too.
                self._in_flight.extend(self._budget.deadline())
                self._fill(ask)
            if self._pending.candidates:  # another run measures what is waited for
                time.sleep(POLL_S)

    def _fill(self, ask: Ask) -> bool:
        """Submit as much as the executor has capacity for; return whether there is anything to wait for."""
        self._submit()
        while self._in_flight.wants_more and self._enqueue(ask, self._in_flight.free_slots):
            self._submit()
        return self._in_flight.count > 0 or (
            len(self._pending.candidates) > 0 and not self._budget.is_exhausted()
        )

    def _enqueue(self, ask: Ask, free_slots: int) -> bool:
        """Ask for candidates and queue them; return whether to ask again before any result.

        Stored outcomes are reported at once.
        """
        begun = time.monotonic()
        asked = ask(max(free_slots, min(REPLAYED, self._recorder.n_resumed - len(self._proposed))))
        for trial in self._recorder.known(asked):
            self._tell(trial)
        new = {c.hash: c for c in asked if not self._recorder.has(c) and c.hash not in self._open}
        self._pending.add(new.values())
        self._open |= new.keys()
        if asked and all(map(self._recorder.was_resumed, asked)):  # a replay costs none of the budget
            self._budget.exclude(time.monotonic() - begun)
        else:
            self._replay.close()
        # Where nothing is open no answer will come: then asking again is the only way on.
        return self._is_news(asked) or (len(asked) > 0 and not self._open)

    def _submit(self) -> None:
        """Submit what no other run has measured or is measuring, and pass on what another run found."""
        if self._pending.candidates and not self._budget.is_exhausted():
            found, mine = self._pending.acquire(self._in_flight)
            for trial in found:
                self._tell(trial)
            if mine:
                self._in_flight.submit(mine, self._budget.deadline())

    def _ask(self, free_slots: int) -> Sequence[Candidate]:
        """Ask the searcher for candidates that may be measured; once the budget is spent there are none.

        A searcher may wait for the outcomes of what is rejected: it receives them, and is asked again.
        """
        while asked := self._proposals(free_slots):
            allowed = [candidate for candidate in asked if not self._recorder.rejects(candidate)]
            self._rejected = 0 if allowed else self._rejected + len(asked)
            for candidate in asked:
                if self._recorder.rejects(candidate):
                    self._tell(Trial(candidate, _REJECTED))
            if allowed:
                return allowed
        return ()

    def _proposals(self, free_slots: int) -> Sequence[Candidate]:
        left = self._budget.trials_left()
        is_over = self._repeats >= REPEATS_MAX or self._rejected >= REJECTED_MAX
        if self._budget.is_spent() or left == 0 or is_over:
            return ()
        with self._recorder.timed("search"):
            asked = self._searcher.ask(free_slots if left is None else min(free_slots, left))
            for candidate in asked:
                if prediction := self._searcher.prediction(candidate):
                    self._recorder.predict(candidate, prediction)
                if client := self._searcher.client(candidate):
                    self._recorder.attribute(candidate, client)
        if asked:
            self._recorder.introduce()
        self._unreported.update(candidate.hash for candidate in asked)
        return asked

    def _is_news(self, asked: Sequence[Candidate]) -> bool:
        """Note what was proposed; whether any of it is proposed for the first time."""
        before = len(self._proposed)
        self._proposed.update(candidate.hash for candidate in asked)
        news = len(self._proposed) > before
        self._repeats = 0 if news else self._repeats + len(asked)
        return news

    def _tell(self, trial: Trial) -> None:
        """Report a trial to the searcher, as often as it proposed the candidate."""
        name = trial.candidate.hash
        self._open.discard(name)
        if times := self._unreported.pop(name, 0):
            with self._recorder.timed("search"):
                self._searcher.tell([trial] * times)
