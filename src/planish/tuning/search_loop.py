"""Search loop: ask, submit, record and tell.

`SearchLoop` asks a searcher for as many candidates as the executor has capacity for, and reports to it each
outcome as it comes. It needs no store: searches that keep no run use it too.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from planish.core import Candidate, Searcher, Trial, gc_paused
from planish.tuning.budget import SearchLimits
from planish.tuning.in_flight import POLL_S, InFlight, Pending
from planish.tuning.recorder import Recorder

REPEATS_MAX = 3_200
"""Proposals in a row that are none for the first time, after which a search is at its end."""

REPLAYED = 64
"""What a run had when it was taken up is proposed again so many at once: no evaluation is waited for."""

Ask = Callable[[int], Sequence[Candidate]]
"""Proposes up to so many candidates; none where there is nothing to propose now."""


class SearchLoop:
    """One search.

    Outcomes are passed on as they come, in any order; a searcher that keeps to its protocol proposes the same
    in each of them.

    Args:
        searcher: proposes candidates.
        in_flight: the evaluations under way.
        leases: what waits to be measured, here or by another run.
        recorder: keeps what became of it.
        tracker: when the search ends.
    """

    def __init__(
        self,
        searcher: Searcher,
        in_flight: InFlight,
        leases: Pending,
        recorder: Recorder,
        tracker: SearchLimits,
    ) -> None:
        self._searcher, self._in_flight, self._leases = searcher, in_flight, leases
        self._recorder, self._budget = recorder, tracker
        self._unreported: Counter[str] = Counter()
        self._open: set[str] = set()
        self._proposed: set[str] = set()
        self._repeats = 0
        self._replay = ExitStack()

    def search(self) -> None:
        """Ask the searcher until the budget is spent or it is at its end."""
        with self._replay:
            self._replay.enter_context(gc_paused())
            self.stream(self._ask)

    def conclude(self) -> None:
        """Measure what the searcher concludes once the budget is spent; a second Ctrl-C leaves it out."""
        self._budget.concluding = True
        for candidate in self._searcher.conclude():
            self.measure(candidate)
        self._budget.concluding = False

    def measure(self, candidate: Candidate) -> Trial | None:
        """Measure what the searcher need not have proposed; None where the search ends before."""
        left = [candidate]
        self.stream(lambda _: [left.pop()] if left else ())
        return self._recorder.trial(candidate)

    def stream(self, ask: Ask) -> None:
        """Evaluate what is proposed, until nothing is under way and nothing more is proposed."""
        try:
            with self._leases.renewed():
                self._go(ask)
        finally:
            self._in_flight.cancel()
            self._leases.release()

    def _go(self, ask: Ask) -> None:
        while self._fill(ask):
            for evaluation in self._in_flight.results():
                self._tell(self._recorder.record(evaluation))
                if self._budget.is_reached():
                    return
                # Once something is measured there is a deadline, for what is under way too.
                self._in_flight.extend(self._budget.deadline())
                self._fill(ask)
            if self._leases.pending:  # another run measures what is waited for
                time.sleep(POLL_S)

    def _fill(self, ask: Ask) -> bool:
        """Submit as much as the executor has capacity for; return whether there is anything to wait for."""
        self._submit()
        while self._in_flight.wants_more and self._take(ask, self._in_flight.free_slots):
            self._submit()
        return self._in_flight.count > 0 or (
            len(self._leases.pending) > 0 and not self._budget.is_exhausted()
        )

    def _take(self, ask: Ask, free_slots: int) -> bool:
        """Ask, and tell at once what is known; whether more may be asked for before any answer."""
        begun = time.monotonic()
        asked = ask(max(free_slots, min(REPLAYED, self._recorder.n_resumed - len(self._proposed))))
        for trial in self._recorder.known(asked):
            self._tell(trial)
        new = {c.hash: c for c in asked if not self._recorder.has(c) and c.hash not in self._open}
        self._leases.add(new.values())
        self._open |= new.keys()
        if asked and all(map(self._recorder.was_resumed, asked)):  # a replay costs none of the budget
            self._budget.exclude(time.monotonic() - begun)
        else:
            self._replay.close()
        # Where nothing is open no answer will come: then asking again is the only way on.
        return self._is_news(asked) or (len(asked) > 0 and not self._open)

    def _submit(self) -> None:
        """Submit what no other run has measured or is measuring, and pass on what another run found."""
        if self._leases.pending and not self._budget.is_exhausted():
            found, mine = self._leases.acquire(self._in_flight)
            for trial in found:
                self._tell(trial)
            if mine:
                self._in_flight.submit(mine, self._budget.deadline())

    def _ask(self, free_slots: int) -> Sequence[Candidate]:
        """Ask the searcher; once the budget is spent nothing is proposed."""
        left = self._budget.trials_left()
        if self._budget.is_spent() or left == 0 or self._repeats >= REPEATS_MAX:
            return ()
        with self._recorder.timed("search"):
            asked = self._searcher.ask(free_slots if left is None else min(free_slots, left))
            for candidate in asked:
                if prediction := self._searcher.prediction(candidate):
                    self._recorder.predict(candidate, prediction)
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
