"""The loop: as much is asked for as the executor has capacity for, and told as answers come."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from planish.core import Candidate, Searcher, Trial, uncollected
from planish.tuning.claiming import POLL_S, Claims
from planish.tuning.journal import Journal
from planish.tuning.spending import Spending
from planish.tuning.underway import UnderWay

REPEATS_MAX = 3_200
"""Proposals in a row that are none for the first time, after which a search is at its end."""

REPLAYED = 64
"""What a run had when it was taken up is proposed again so many at once: nobody is waited for."""

Ask = Callable[[int], Sequence[Candidate]]
"""Proposes up to so many candidates; none where there is nothing to propose now."""


class SearchLoop:
    """One search.

    Answers are told as they come, in any order, and there is no order in which a searcher that keeps to its
    protocol proposes anything else for it.

    Args:
        searcher: proposes candidates.
        under_way: what the executor is at.
        claims: what waits to be measured, here or by another run.
        journal: keeps what became of it.
        spending: tells when the search ends.
    """

    def __init__(
        self, searcher: Searcher, under_way: UnderWay, claims: Claims, journal: Journal, spending: Spending
    ) -> None:
        self._searcher, self._under_way, self._claims = searcher, under_way, claims
        self._journal, self._spending = journal, spending
        self._untold: Counter[str] = Counter()
        self._open: set[str] = set()
        self._proposed: set[str] = set()
        self._repeats = 0
        self._replay = ExitStack()

    def search(self) -> None:
        """Ask the searcher until the budget is spent or it is at its end."""
        with self._replay:
            self._replay.enter_context(uncollected())
            self.stream(self._ask)

    def measure(self, candidate: Candidate) -> Trial | None:
        """Measure what the searcher need not have proposed; None where the search ends before."""
        left = [candidate]
        self.stream(lambda _: [left.pop()] if left else ())
        return self._journal.trial(candidate)

    def stream(self, ask: Ask) -> None:
        """Evaluate what is proposed, until nothing is under way and nothing more is proposed."""
        try:
            with self._claims.renewed():
                self._go(ask)
        finally:
            self._under_way.cancel()
            self._claims.release()

    def _go(self, ask: Ask) -> None:
        while self._fill(ask):
            for candidate, answer in self._under_way.answers():
                self._tell(self._journal.answered(candidate, answer))
                if self._spending.is_reached():
                    return
                # Once something is measured there is a deadline, for what is under way too.
                self._under_way.extend(self._spending.deadline())
                self._fill(ask)
            if self._claims.waiting:  # another run measures what is waited for
                time.sleep(POLL_S)

    def _fill(self, ask: Ask) -> bool:
        """Give the executor as much as it has capacity for; whether there is anything to wait for."""
        self._submit()
        while self._under_way.is_hungry and self._take(ask, self._under_way.room):
            self._submit()
        return self._under_way.count > 0 or (len(self._claims.waiting) > 0 and not self._spending.is_over())

    def _take(self, ask: Ask, room: int) -> bool:
        """Ask, and tell at once what is known; whether more may be asked for before any answer."""
        begun = time.monotonic()
        asked = ask(max(room, min(REPLAYED, self._journal.trials.old - len(self._proposed))))
        for trial in self._journal.known(asked):
            self._tell(trial)
        new = {c.hash: c for c in asked if not self._journal.has(c) and c.hash not in self._open}
        self._claims.add(new.values())
        self._open |= new.keys()
        if asked and all(map(self._journal.is_old, asked)):  # a replay costs none of the budget
            self._spending.give_back(time.monotonic() - begun)
        else:
            self._replay.close()
        # Where nothing is open no answer will come: then asking again is the only way on.
        return self._is_news(asked) or (len(asked) > 0 and not self._open)

    def _submit(self) -> None:
        """Have measured what no run has measured or is measuring; what another run found is told."""
        if self._claims.waiting and not self._spending.is_over():
            found, mine = self._claims.settle(self._under_way)
            for trial in found:
                self._tell(trial)
            if mine:
                self._under_way.submit(mine, self._spending.deadline())

    def _ask(self, room: int) -> Sequence[Candidate]:
        """Ask the searcher; once the budget is spent nothing is proposed."""
        left = self._spending.trials_left()
        if self._spending.is_spent() or left == 0 or self._repeats >= REPEATS_MAX:
            return ()
        with self._journal.timed("search"):
            asked = self._searcher.ask(room if left is None else min(room, left))
        if asked:
            self._journal.introduce()
        self._untold.update(candidate.hash for candidate in asked)
        return asked

    def _is_news(self, asked: Sequence[Candidate]) -> bool:
        """Note what was proposed; whether any of it is proposed for the first time."""
        before = len(self._proposed)
        self._proposed.update(candidate.hash for candidate in asked)
        news = len(self._proposed) > before
        self._repeats = 0 if news else self._repeats + len(asked)
        return news

    def _tell(self, trial: Trial) -> None:
        """Tell the searcher what it asked for, as often as it did."""
        name = trial.candidate.hash
        self._open.discard(name)
        if times := self._untold.pop(name, 0):
            with self._journal.timed("search"):
                self._searcher.tell([trial] * times)
