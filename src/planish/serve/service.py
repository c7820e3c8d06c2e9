"""Tools of the measuring service: what clients may ask for, and the thread in which the engine answers.

Everything that is measured is a trial of one run of the engine, whose searcher proposes what clients submit:
so candidates are verified, timed one at a time on the machine, stored, and shown by the dashboard as those of
any search. A comparison is the end of the run; what is submitted later resumes it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock, Thread
from typing import Any, Literal

from planish.core import (
    AllFailedError,
    Candidate,
    CanEvolve,
    CanStep,
    Level,
    Lost,
    Measured,
    PlanishError,
    Program,
    ScheduleError,
    Task,
    Trial,
    rng,
)
from planish.serve.answers import (
    catalogue,
    comparison_document,
    finalist_document,
    has_no_regression,
    objective_document,
    outcome_document,
    steps_of,
)
from planish.serve.candidates import MalformedError, read_candidate
from planish.serve.submissions import FullError, Submissions
from planish.store import Store
from planish.tuning.api import task_of, tune_program
from planish.tuning.budget import FinalLimits
from planish.tuning.recorder import Progress
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings

SEARCHER = "clients"
"""The searcher of a served run."""
_ENDLESS = Budget(trials=10**9)
_ASKED = "a client asked for the comparison"
_STOP_S = 10.0
"""Seconds in which the engine ends what is under way, when the service ends."""
_NEIGHBORS = 32
"""Neighbors that are drawn where a space has no steps."""
_STEPS_SHOWN = 256
_HISTORY_MOST = 100
_ANSWERS_KEPT = 20_000

_log = logging.getLogger("planish")

Kind = Literal["bad_request", "unknown_step", "busy", "quota", "unavailable"]


class ToolError(Exception):
    """A tool cannot do what a client asks for.

    Args:
        kind: what is wrong, for programs.
        message: what is wrong and how to fix it, in one line.
    """

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of what a client may ask for.

    Args:
        steps: of a candidate.
        waiting: candidates that wait at a time.
        quota: candidates in all, since the service was started; None for no limit.
        comparisons: in all; None for no limit.
        rate: requests a second, on average.
        burst: requests at once.
    """

    steps: int = 500
    waiting: int = 16
    quota: int | None = None
    comparisons: int | None = None
    rate: float = 50.0
    burst: int = 100


@dataclass
class Client:
    """Usage of a client."""

    evaluations: int = 0
    comparisons: int = 0
    tokens: float = 0.0
    refilled: float = field(default_factory=time.monotonic)


class MeasuringService:
    """A task that clients may submit candidates for.

    Args:
        level: of the program.
        program: that is tuned.
        settings: objectives, space, cores and seed; their searcher does not count.
        store: where the run is kept; the service writes to it from a thread of its own.
        limits: of each client.
        compare_s: seconds that a comparison may take; repeated because it was undecided, three times as long.
    """

    def __init__(
        self,
        level: Level,
        program: Program,
        settings: Settings,
        store: Store,
        limits: ServiceLimits,
        compare_s: float,
    ) -> None:
        self._level, self._compare_s = level, compare_s
        self.limits = limits
        self._space_name = settings.space or _stepwise(level, task_of(level, program, settings))
        self._settings = replace(settings, searcher=SEARCHER, space=self._space_name, searcher_options={})
        self.task = task_of(level, program, self._settings)
        self._space = level.space(self.task, self._space_name)
        self._store = store
        self._queue = Submissions(self.limits.waiting, self._on_end)
        self._clients: dict[str, Client] = {}
        self._busy = Lock()
        self._progress: Progress | None = None
        self._answers: dict[str, Trial] = {}
        self._baseline: Trial | None = None
        self._first: Trial | None = None
        self._comparing: Future[Result] | None = None
        self._compared: Result | None = None
        self._compared_trials = -1
        self._stopping = False
        self._engine = Thread(target=self._run, name="engine", daemon=True)
        self._description: dict[str, Any] = {}

    # Life

    def start(self) -> None:
        """Start the engine; measure the baseline and the first candidate of the space.

        Raises:
            PlanishError: the engine cannot be started, or the baseline fails.
        """
        self._engine.start()
        baseline, first = self._level.baseline(self.task), self._space.start()
        futures = [self._queue.submit("", each) for each in dict.fromkeys((baseline, first))]
        found = [future.result() for future in futures]
        self._baseline, self._first = found[0], found[-1]
        outcome = self._baseline.outcome
        if not isinstance(outcome, Measured):
            what = f"the baseline failed: {outcome.stage}: {outcome.reason}: {outcome.detail}"
            raise PlanishError(what, "Fix the program, data or metric.")
        self._description = self._describe()

    def stop(self) -> None:
        """End the run, without a comparison; what waits is answered with an error. Harmless when repeated."""
        self._stopping = True
        if not self._engine.is_alive():
            return
        if self._progress is not None and self._comparing is None:
            self._progress.compares = False
        self._queue.end()
        # A comparison may take longer: the run is then as one that is killed, and can be resumed.
        self._engine.join(_STOP_S)
        self._fail(ToolError("unavailable", "The service has ended."))

    def _run(self) -> None:
        while not self._stopping:
            if not (self._queue.wait(1.0) or self._comparing):
                continue
            try:
                self._search()
            except Exception as error:  # noqa: BLE001  (what waits has to be answered)
                self._fail(self._reported(error))

    def _reported(self, error: Exception) -> ToolError:
        """Log why the engine ended; return the error that clients receive."""
        if isinstance(error, AllFailedError):  # each has its answer
            return ToolError("unavailable", f"Nothing to be compared: {error}")
        if not isinstance(error, PlanishError):
            _log.error("the engine ended", exc_info=error)
            return ToolError("unavailable", f"The engine ended: {type(error).__name__}.")
        if not self._stopping:  # else the store was closed before the engine had ended
            _log.warning("the engine ended: %s", error)
        return ToolError("unavailable", f"The engine ended: {error}")

    def _fail(self, error: ToolError) -> None:
        self._queue.fail(error)
        with self._busy:
            comparing, self._comparing = self._comparing, None
        if comparing is not None:
            comparing.set_exception(error)

    def _search(self) -> None:
        """Run the engine until a comparison is asked for, or the service ends; then compare."""
        self._queue.begin()
        if self._comparing is not None:
            self._queue.end()
        trials = self._trials
        # Without limits, a comparison that was undecided is repeated with more time.
        again = self._comparing is not None and self._compared_trials == trials
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
        with self._busy:
            comparing, self._comparing = self._comparing, None
            if comparing is not None:
                self._compared, self._compared_trials = found, self._trials
        if comparing is not None:
            comparing.set_result(found)

    # Listener of the engine

    def started(self, progress: Progress) -> None:
        """Note the state of the run; the search begins."""
        self._progress = progress
        progress.compares = self._comparing is not None or not self._stopping

    def _on_end(self) -> None:
        if self._progress is not None:
            self._progress.stop_reason = "the service has ended" if self._stopping else _ASKED

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Note what became of a candidate."""
        del progress
        if len(self._answers) < _ANSWERS_KEPT:
            self._answers[trial.candidate.hash] = trial

    def ending(self, progress: Progress, what: str) -> None:
        """Log a step of the comparison."""
        _log.info("run %s: %s", progress.run_id, what)

    # Tools

    @property
    def _trials(self) -> int:
        return self._progress.trials if self._progress else 0

    def describe(self, client: str) -> dict[str, Any]:
        """Return the task: program, objectives, target, baseline, steps, rules and limits."""
        return {**self._description, "used": self._used(client)}

    def _describe(self) -> dict[str, Any]:
        assert self._baseline is not None
        assert self._first is not None
        task, objectives = self.task, self.task.objectives
        return {
            "task": task.key,
            "run": self._progress.run_id if self._progress else "",
            "level": self._level.name,
            "program": task.program.text,
            "target": task.target.text,
            "machine": dict(self._level.machine()),
            "objectives": [objective_document(each) for each in objectives],
            "baseline": {
                "steps": steps_of(self._baseline.candidate),
                **outcome_document(self._baseline, objectives, None),
            },
            "start": {
                "steps": steps_of(self._first.candidate),
                **outcome_document(self._first, objectives, self._baseline),
            },
            "space": self._space_name,
            "steps": catalogue(self._level.steps),
            "rules": list(RULES),
            "limits": {name: getattr(self.limits, name) for name in self.limits.__dataclass_fields__},
        }

    def legal_steps(self, client: str, steps: object = ()) -> dict[str, Any]:
        """Return what may follow a candidate: steps where its space has them, else neighbors of it.

        Args:
            client: asks.
            steps: of the candidate; none for the start.
        """
        del client
        return self._next(self._candidate(steps) if steps else self._space.start())

    def _next(self, candidate: Candidate) -> dict[str, Any]:
        space = self._space
        try:
            if isinstance(space, CanStep):
                found = space.steps(candidate)
                shown = [step.to_json() for step in found[:_STEPS_SHOWN]]
                return {"next_steps": shown, "complete": len(shown) == len(found)}
            if isinstance(space, CanEvolve):
                return {"neighbors": _neighbors(space, candidate), "complete": False}
        except (PlanishError, ValueError, TypeError, LookupError, AttributeError) as error:
            # A candidate of another space, or an illegal one.
            return {"next_steps": [], "complete": True, "note": str(error)[:500]}
        return {"next_steps": [], "complete": False}

    def evaluate(self, client: str, steps: object) -> Callable[[], dict[str, Any]] | Future[dict[str, Any]]:
        """Have a candidate verified and measured.

        Args:
            client: asks.
            steps: of the candidate, from the unchanged program.

        Returns:
            The answer, once it is there.

        Raises:
            ToolError: the steps are none, or the client has used up what it may.
        """
        candidate = self._candidate(steps)
        known = self._answers.get(candidate.hash)
        if known is not None and not isinstance(known.outcome, Lost):
            return partial(self._answer, client, known, cached=True)
        user = self._user(client)
        with self._busy:
            if self.limits.quota is not None and user.evaluations >= self.limits.quota:
                raise ToolError("quota", f"All {self.limits.quota} evaluations of client {client} are used.")
            try:
                future = self._queue.submit(client, candidate)
            except FullError:
                what = f"{self.limits.waiting} candidates of client {client} wait already"
                raise ToolError("busy", f"{what}. Wait for an answer first.") from None
            user.evaluations += 1
        found = _answer_to_come()
        future.add_done_callback(lambda done: _pass_on(done, found, partial(self._answer, client)))
        return found

    def _answer(self, client: str, trial: Trial, *, cached: bool = False) -> dict[str, Any]:
        if cached:
            trial = replace(trial, cached=True)
        document = outcome_document(trial, self.task.objectives, self._baseline)
        if isinstance(trial.outcome, Lost):
            document["note"] = "The worker was lost through no fault of the candidate: submit it again."
        return {
            **document,
            **self._conclusion(trial.candidate),
            **self._after(trial),
            "used": self._used(client),
        }

    def _after(self, trial: Trial) -> dict[str, Any]:
        return self._next(trial.candidate) if isinstance(self._space, CanStep) else {}

    def _conclusion(self, candidate: Candidate) -> dict[str, Any]:
        """Return the verdict of the last comparison on a candidate; nothing where it was none of it."""
        found = self._compared.finalists if self._compared else ()
        for each in found:
            if each.candidate == candidate:
                document = finalist_document(each)
                return {name: document[name] for name in ("gain", "interval", "verdict", "conclusive")}
        return {}

    def compare(self, client: str) -> Callable[[], dict[str, Any]] | Future[dict[str, Any]]:
        """Have the best candidates measured again, interleaved with the baseline, in fresh processes.

        Returns:
            The verdict, once it is there.

        Raises:
            ToolError: the client has used up what it may.
        """
        user = self._user(client)
        with self._busy:
            compared = self._compared
            if compared is not None and self._compared_trials == self._trials:
                document = comparison_document(compared)
                if document["conclusive"]:
                    return lambda: document
            limit = self.limits.comparisons
            if self._comparing is None:
                if limit is not None and user.comparisons >= limit:
                    raise ToolError("quota", f"All {limit} comparisons of client {client} are used.")
                user.comparisons += 1
                self._comparing = Future[Result]()
            found, comparing = _answer_to_come(), self._comparing
        self._queue.end()
        comparing.add_done_callback(lambda done: _pass_on(done, found, comparison_document))
        return found

    def history(self, client: str, after: object = None, limit: object = 20) -> dict[str, Any]:
        """Return trials of the run, the newest last.

        Args:
            client: asks.
            after: only trials of a greater number; None for the newest.
            limit: at most so many.
        """
        del client
        if not _is_count(limit) or (after is not None and not _is_count(after)):
            raise ToolError("bad_request", "after and limit are whole numbers, not negative.")
        assert isinstance(limit, int)
        trials = [*self._answers.values()]  # a copy: the engine adds to them
        trials.sort(key=lambda each: each.index)
        if isinstance(after, int):
            chosen = [each for each in trials if each.index > after][: min(limit, _HISTORY_MOST)]
        else:
            chosen = trials[-min(limit, _HISTORY_MOST) :] if limit else []
        return {
            "trials": [
                {"steps": steps_of(e.candidate), **outcome_document(e, self.task.objectives, self._baseline)}
                for e in chosen
            ],
            "count": len(trials),
        }

    def best(self, client: str) -> dict[str, Any]:
        """Return the best candidate so far, and the last comparison."""
        del client
        best = self._best()
        return {
            "best": None
            if best is None
            else {
                "steps": steps_of(best.candidate),
                **outcome_document(best, self.task.objectives, self._baseline),
                **self._conclusion(best.candidate),
            },
            "comparison": comparison_document(self._compared) if self._compared else None,
        }

    def _best(self) -> Trial | None:
        """Return the best trial; of several objectives the best by the first that is worse in no other."""
        lead, *others = self.task.objectives
        if not others:
            return self._progress.best if self._progress else None
        accepted = [
            (cost, each.index, each)
            for each in [*self._answers.values()]
            if (cost := each.cost(lead)) is not None
            and has_no_regression(each, self.task.objectives, self._baseline)
        ]
        return min(accepted, key=lambda found: found[:2])[2] if accepted else None

    # Clients

    def admit(self, client: str) -> bool:
        """Count a request; return whether it is within the rate."""
        user, now = self._user(client), time.monotonic()
        with self._busy:
            gained = (now - user.refilled) * self.limits.rate
            user.tokens, user.refilled = min(self.limits.burst, user.tokens + gained), now
            if user.tokens < 1:
                return False
            user.tokens -= 1
            return True

    def _user(self, client: str) -> Client:
        with self._busy:
            return self._clients.setdefault(client, Client(tokens=float(self.limits.burst)))

    def _used(self, client: str) -> dict[str, Any]:
        user = self._user(client)
        return {"evaluations": user.evaluations, "comparisons": user.comparisons}

    def _candidate(self, steps: object) -> Candidate:
        """Read a candidate that a client submits.

        Raises:
            ToolError: it is none.
        """
        try:
            return read_candidate(steps, self._level.steps, self.limits.steps)
        except MalformedError as error:
            raise ToolError("bad_request", f"{error}"[:500]) from None
        except PlanishError as error:
            raise ToolError("unknown_step", f"{error}"[:500]) from None


RULES = (
    "A candidate is a list of steps from the unchanged program.",
    "It is verified on inputs of the service before it is timed, and afterwards.",
    "The task fixes shapes, inputs, tolerance, timer and baseline; nothing that is submitted changes them.",
    "One candidate is timed at a time on this machine, whoever submits it.",
    "Each candidate is measured once; submitted again, it has the same answer.",
    "A single measurement is never conclusive, unless it is exact.",
    "compare measures the best again, interleaved with the baseline, in fresh processes.",
)


def _answer_to_come() -> Future[dict[str, Any]]:
    """Return a future that a request which is given up does not cancel."""
    found = Future[dict[str, Any]]()
    found.set_running_or_notify_cancel()
    return found


def _pass_on(done: Future[Any], found: Future[Any], make: Callable[[Any], Any]) -> None:
    try:
        found.set_result(make(done.result()))
    except Exception as error:  # noqa: BLE001  (it is for whoever waits)
        found.set_exception(error)


def _stepwise(level: Level, task: Task) -> str:
    """Return the first space of a level that is walked step by step; its first one where none is."""
    for name in level.spaces:
        try:
            if isinstance(level.space(task, name), CanStep):
                return name
        except PlanishError:  # not for this program
            continue
    return level.spaces[0]


def _neighbors(space: CanEvolve, candidate: Candidate) -> list[list[Any]]:
    found: dict[str, Candidate] = {}
    for index in range(_NEIGHBORS):
        try:
            each = space.mutate(candidate, rng(int(candidate.hash[:8], 16), index))
        except ScheduleError:
            continue
        found[each.hash] = each
    return [steps_of(each) for each in found.values()]


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
