"""Run of the measuring service: the thread in which the engine measures what clients submit.

Everything that is measured is a trial of one run of the engine, whose searcher proposes what clients submit:
so candidates are verified, timed one at a time on the machine, stored, and shown by the dashboard as those of
any search. A comparison is the end of the run; what is submitted later resumes it.
"""

from __future__ import annotations

import logging
from collections import Counter
from concurrent.futures import Future
from dataclasses import replace
from threading import Lock, Thread

from planish.core import AllFailedError, Candidate, Level, Measured, PlanishError, Task, Trial
from planish.serve.documents import has_no_regression
from planish.serve.submissions import Submissions, uncancelable
from planish.store import Store
from planish.tuning.api import tune_program
from planish.tuning.budget import FinalLimits
from planish.tuning.comparison import Finalist
from planish.tuning.recorder import Progress
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings

SEARCHER = "clients"
"""The searcher of a served run."""
_ENDLESS = Budget(trials=10**9)
_ASKED = "a client asked for the comparison"
_STOP_S = 10.0
"""Seconds in which the engine ends what is under way, when the service ends."""
ANSWERS_KEPT = 20_000
"""Trials that are held in memory: the newest."""

_log = logging.getLogger("planish")


class UnavailableError(Exception):
    """The engine has ended, or the service ends; the message is one line, for clients."""


class ServedRun:
    """A run whose candidates clients submit.

    Args:
        level: of the program.
        task: that is tuned.
        settings: space, cores and seed.
        store: where the run is kept; a thread of its own writes to it.
        waiting: candidates of one client that may wait at a time.
        compare_s: seconds that a comparison may take; repeated because it was undecided, three times as long.

    Attributes:
        baseline: its trial; None before it is measured.
        first: the trial of the space's first candidate.
        best: the best trial by the first objective, of those that are worse than the baseline in no other.
        compared: the last comparison.
    """

    def __init__(
        self, level: Level, task: Task, settings: Settings, store: Store, waiting: int, compare_s: float
    ) -> None:
        self._level, self.task, self._settings = level, task, replace(settings, searcher=SEARCHER)
        self._store, self._compare_s = store, compare_s
        self._queue = Submissions(waiting, self._on_end)
        self._lock = Lock()
        self._progress: Progress | None = None
        self._answers: dict[str, Trial] = {}
        self._counted = bytearray()  # by index: whether the trial is counted for its client
        self._used: Counter[str] = Counter()
        self._comparing: Future[Result] | None = None
        self._compared_trials = -1
        self._stopping = False
        self._thread = Thread(target=self._run, name="engine", daemon=True)
        self.baseline: Trial | None = None
        self.first: Trial | None = None
        self.best: Trial | None = None
        self.compared: Result | None = None

    def start(self, first: Candidate) -> None:
        """Start the engine; measure the baseline and the first candidate of the space.

        Raises:
            PlanishError: the engine cannot be started, or the baseline fails.
        """
        self._thread.start()
        candidates = (self._level.baseline(self.task), first)
        futures = [self._queue.submit("", each) for each in dict.fromkeys(candidates)]
        found = [future.result() for future in futures]
        outcome = found[0].outcome
        if not isinstance(outcome, Measured):
            what = f"the baseline failed: {outcome.stage}: {outcome.reason}: {outcome.detail}"
            raise PlanishError(what, "Fix the program, data or metric.")
        self.baseline, self.first = found[0], found[-1]

    def stop(self) -> None:
        """End the run, without a comparison; what waits is answered with an error. Harmless when repeated."""
        self._stopping = True
        if not self._thread.is_alive():
            return
        if self._progress is not None and self._comparing is None:
            self._progress.compares = False
        self._queue.end()
        # A comparison may take longer: the run is then as one that is killed, and can be resumed.
        self._thread.join(_STOP_S)
        self._fail(UnavailableError("The service has ended."))

    @property
    def run_id(self) -> str:
        """Return the run's name in the store; empty before it begins."""
        return self._progress.run_id if self._progress else ""

    def submit(self, client: str, candidate: Candidate) -> Future[Trial]:
        """Have a candidate measured; raises FullError as `Submissions.submit`."""
        return self._queue.submit(client, candidate)

    def used(self, client: str) -> int:
        """Return how many candidates of a client have been measured, or wait, also before a restart."""
        return self._used[client] + self._queue.waiting_of(client)

    def answer(self, candidate: Candidate) -> Trial | None:
        """Return what became of a candidate; None where that is not at hand."""
        return self._answers.get(candidate.hash)

    def answers(self) -> list[Trial]:
        """Return the trials at hand, by index."""
        copied = [*self._answers.values()]  # at once: the engine adds to them
        return sorted(copied, key=lambda each: each.index)

    @property
    def count(self) -> int:
        """Return how many trials the run has."""
        return self._progress.trials if self._progress else 0

    def finalist(self, candidate: Candidate) -> Finalist | None:
        """Return how a candidate did in the last comparison; None where it took no part."""
        found = self.compared.finalists if self.compared else ()
        return next((each for each in found if each.candidate == candidate), None)

    @property
    def is_compared(self) -> bool:
        """Return whether nothing was measured since the last comparison."""
        return self.compared is not None and self._compared_trials == self.count

    def compare(self) -> tuple[Future[Result], bool]:
        """Have the best candidates compared; return the result to come, and whether it was asked for now."""
        with self._lock:
            new = self._comparing is None
            comparing = self._comparing = self._comparing or uncancelable(Future[Result]())
        self._queue.end()
        return comparing, new

    # The engine's thread

    def _run(self) -> None:
        while not self._stopping:
            if not (self._queue.wait(1.0) or self._comparing):
                continue
            try:
                self._search()
            except Exception as error:  # noqa: BLE001  (what waits has to be answered)
                self._fail(self._reported(error))

    def _reported(self, error: Exception) -> UnavailableError:
        """Log why the engine ended; return the error that clients receive."""
        if isinstance(error, AllFailedError):  # each has its answer
            return UnavailableError(f"Nothing to be compared: {error}")
        if not isinstance(error, PlanishError):
            _log.error("the engine ended", exc_info=error)
            return UnavailableError(f"The engine ended: {type(error).__name__}.")
        if not self._stopping:  # else the store was closed before the engine had ended
            _log.warning("the engine ended: %s", error)
        return UnavailableError(f"The engine ended: {error}")

    def _fail(self, error: UnavailableError) -> None:
        self._queue.fail(error)
        with self._lock:
            comparing, self._comparing = self._comparing, None
        if comparing is not None:
            comparing.set_exception(error)

    def _search(self) -> None:
        """Run the engine until a comparison is asked for, or the service ends; then compare."""
        self._queue.begin()
        if self._comparing is not None:
            self._queue.end()
        # Without limits, a comparison that was undecided is repeated with more time.
        again = self._comparing is not None and self.is_compared
        found = tune_program(
            self._level,
            self.task.program,
            budget=Budget() if again else _ENDLESS,
            settings=self._settings,
            store=self._store,
            listener=self,
            searcher=self._queue,
            limits=FinalLimits(searched_s=self._compare_s),
        )
        with self._lock:
            comparing, self._comparing = self._comparing, None
            if comparing is not None:
                self.compared, self._compared_trials = found, self.count
        if comparing is not None:
            comparing.set_result(found)

    def _on_end(self) -> None:
        if self._progress is not None:
            self._progress.stop_reason = "the service has ended" if self._stopping else _ASKED

    def started(self, progress: Progress) -> None:
        """Note the state of the run; the search begins."""
        self._progress = progress
        progress.compares = self._comparing is not None or not self._stopping

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Record the outcome of a candidate; a resumed run reports its trials again."""
        del progress
        if trial.index >= len(self._counted):
            self._counted.extend(bytes(trial.index + 1 - len(self._counted)))
        if not self._counted[trial.index]:
            self._counted[trial.index] = 1
            self._used[trial.client] += 1
        if self.baseline is None and trial.candidate == self._level.baseline(self.task):
            self.baseline = trial
        self._answers[trial.candidate.hash] = trial
        if len(self._answers) > ANSWERS_KEPT:
            del self._answers[next(iter(self._answers))]
        lead = self.task.objectives[0]
        cost = trial.cost(lead)
        if cost is not None and has_no_regression(trial, self.task.objectives, self.baseline):
            known = None if self.best is None else self.best.cost(lead)
            if known is None or (cost, trial.index) < (known, self.best.index if self.best else 0):
                self.best = trial

    def ending(self, progress: Progress, what: str) -> None:
        """Log a step of the comparison."""
        _log.info("run %s: %s", progress.run_id, what)
