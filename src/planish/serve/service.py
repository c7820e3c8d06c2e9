"""Tools of the measuring service: what clients may ask for, within their limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any, Literal

from planish.core import (
    Candidate,
    CanEvolve,
    CanStep,
    Level,
    Lost,
    PlanishError,
    Program,
    ScheduleError,
    Task,
    Trial,
    rng,
)
from planish.serve.documents import (
    MalformedError,
    catalogue,
    comparison_document,
    finalist_document,
    objective_document,
    outcome_document,
    read_candidate,
    steps_of,
    trial_document,
)
from planish.serve.served_run import ServedRun
from planish.serve.submissions import FullError
from planish.store import Store
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

STEPS_MOST = 500
"""Steps of a candidate."""
WAITING_MOST = 16
"""Candidates of one client that wait at a time."""
RATE, BURST = 50.0, 100
"""Requests of one client: a second, on average, and at once."""
_NEIGHBORS = 32
"""Neighbors that are drawn where a space has no steps."""
_STEPS_SHOWN = 256
_HISTORY_MOST = 100


@dataclass(frozen=True)
class PendingAnswer:
    """Answer that is not there yet.

    Args:
        result: what is waited for; it cannot be canceled.
        make: computes the answer from it.
    """

    result: Future[Any]
    make: Callable[[Any], dict[str, Any]]


ErrorCode = Literal["bad_request", "unknown_step", "unknown_tool", "busy", "quota", "unavailable"]


class ToolError(Exception):
    """A tool cannot do what a client asks for.

    Args:
        code: what is wrong, for programs.
        message: what is wrong and how to fix it, in one line.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code


@dataclass
class _Client:
    """Requests that a client has left, and the comparisons that it asked for."""

    tokens: float = BURST
    refilled: float = field(default_factory=time.monotonic)
    comparisons: int = 0


class MeasuringService:
    """A task that clients may submit candidates for.

    Args:
        level: of the program.
        program: that is tuned.
        settings: objectives, space, cores and seed; their searcher does not count.
        store: where the run is kept; the service writes to it from a thread of its own.
        quota: candidates that each client may have measured, before restarts too; None for no limit.
        compare_s: seconds that a comparison may take; repeated because it was undecided, three times as long.
    """

    def __init__(
        self,
        level: Level,
        program: Program,
        settings: Settings,
        store: Store,
        quota: int | None,
        compare_s: float,
    ) -> None:
        self._level, self._quota = level, quota
        self._space_name = settings.space or _default_space(level, task_of(level, program, settings))
        settings = replace(settings, space=self._space_name, searcher_options={})
        self.task = task_of(level, program, settings)
        self._space = level.space(self.task, self._space_name)
        self._run = ServedRun(level, self.task, settings, store, WAITING_MOST, compare_s)
        self._clients: dict[str, _Client] = {}
        self._lock = Lock()
        self._description: dict[str, Any] = {}

    def start(self) -> None:
        """Start the engine; measure the baseline and the first candidate of the space.

        Raises:
            PlanishError: the engine cannot be started, or the baseline fails.
        """
        self._run.start(self._space.start())
        self._description = self._describe()

    def stop(self) -> None:
        """End the run, without a comparison; what waits is answered with an error. Harmless when repeated."""
        self._run.stop()

    def describe(self, client: str) -> dict[str, Any]:
        """Return the task: program, objectives, target, baseline, steps, rules and limits."""
        return {**self._description, "used": self._used(client)}

    def _describe(self) -> dict[str, Any]:
        run, task, objectives = self._run, self.task, self.task.objectives
        baseline, first = run.baseline, run.first
        assert baseline is not None
        assert first is not None
        text = self._level.text_format(task)
        return {
            "task": task.key,
            "run": run.run_id,
            "level": self._level.name,
            "program": self._level.public_text(task.program),
            "target": task.target.text,
            "machine": dict(self._level.machine()),
            "objectives": [objective_document(each) for each in objectives],
            "baseline": trial_document(baseline, objectives, None),
            "start": trial_document(first, objectives, baseline),
            "roofline_s": self._level.least_seconds(task),
            "space": self._space_name,
            "steps": catalogue(self._level.steps),
            **({"text": text} if text else {}),
            "rules": list(RULES),
            "limits": {
                "steps": STEPS_MOST,
                "waiting": WAITING_MOST,
                "quota": self._quota,
                "rate": RATE,
                "burst": BURST,
            },
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

    def evaluate(
        self, client: str, steps: object = None, text: object = None
    ) -> dict[str, Any] | PendingAnswer:
        """Have a candidate verified and measured.

        Args:
            client: asks.
            steps: of the candidate, from the unchanged program.
            text: of the candidate, in place of steps, as the level reads it: see `text` in `describe`.

        Returns:
            The answer, once it is there.

        Raises:
            ToolError: the steps are none, or the client has used up what it may.
        """
        if (steps is None) == (text is None):
            raise ToolError("bad_request", "'evaluate' needs the argument 'steps', or 'text' in its place.")
        candidate = self._candidate(steps, text)
        known = self._run.answer(candidate)
        if known is not None:
            return self._answer(client, replace(known, cached=True))
        with self._lock:
            if self._quota is not None and self._run.used(client) >= self._quota:
                raise ToolError("quota", f"All {self._quota} evaluations of client {client} are used.")
            try:
                future = self._run.submit(client, candidate)
            except FullError:
                what = f"{WAITING_MOST} candidates of client {client} wait already"
                raise ToolError("busy", f"{what}. Wait for an answer first.") from None
        return PendingAnswer(future, partial(self._answer, client))

    def _answer(self, client: str, trial: Trial) -> dict[str, Any]:
        document = outcome_document(trial, self.task.objectives, self._run.baseline)
        if isinstance(trial.outcome, Lost):
            document["note"] = "The worker was lost through no fault of the candidate: submit it again."
        after = self._next(trial.candidate) if isinstance(self._space, CanStep) else {}
        return {**document, **self._conclusion(trial.candidate), **after, "used": self._used(client)}

    def _conclusion(self, candidate: Candidate) -> dict[str, Any]:
        """Return the verdict of the last comparison on a candidate; nothing where it was none of it."""
        found = self._run.finalist(candidate)
        if found is None:
            return {}
        document = finalist_document(found)
        return {name: document[name] for name in ("gain", "interval", "verdict", "conclusive")}

    def compare(self, client: str) -> dict[str, Any] | PendingAnswer:
        """Have the best candidates measured again, interleaved with the baseline, in fresh processes.

        Returns:
            The verdict, once it is there.
        """
        compared = self._run.compared
        if compared is not None and self._run.is_compared:
            document = comparison_document(compared)
            if document["conclusive"]:
                return document
        comparing, new = self._run.compare()
        with self._lock:
            self._client(client).comparisons += new
        return PendingAnswer(comparing, comparison_document)

    def history(self, client: str, after: object = None, limit: object = 20) -> dict[str, Any]:
        """Return trials of the run, the newest last.

        Args:
            client: asks.
            after: only trials of a greater number; None for the newest.
            limit: most that are listed.
        """
        del client
        if not _is_count(limit) or (after is not None and not _is_count(after)):
            raise ToolError("bad_request", "after and limit are whole numbers, not negative.")
        assert isinstance(limit, int)
        trials = self._run.answers()
        if isinstance(after, int):
            chosen = [each for each in trials if each.index > after][: min(limit, _HISTORY_MOST)]
        else:
            chosen = trials[-min(limit, _HISTORY_MOST) :] if limit else []
        documents = [{"client": each.client, **self._document(each)} for each in chosen]
        return {"trials": documents, "count": len(trials)}

    def best(self, client: str) -> dict[str, Any]:
        """Return the best candidate so far, and the last comparison."""
        del client
        best, compared = self._run.best, self._run.compared
        return {
            "best": {**self._document(best), **self._conclusion(best.candidate)} if best else None,
            "comparison": comparison_document(compared) if compared else None,
        }

    def _document(self, trial: Trial) -> dict[str, Any]:
        return trial_document(trial, self.task.objectives, self._run.baseline)

    def admit(self, client: str) -> bool:
        """Count a request; return whether it is within the rate."""
        with self._lock:
            user, now = self._client(client), time.monotonic()
            gained = (now - user.refilled) * RATE
            user.tokens, user.refilled = min(float(BURST), user.tokens + gained), now
            if user.tokens < 1:
                return False
            user.tokens -= 1
            return True

    def _client(self, name: str) -> _Client:
        return self._clients.setdefault(name, _Client())

    def _used(self, client: str) -> dict[str, Any]:
        return {"evaluations": self._run.used(client), "comparisons": self._client(client).comparisons}

    def _candidate(self, steps: object, text: object = None) -> Candidate:
        """Read a candidate that a client submits, as steps or as a text.

        Raises:
            ToolError: it is none.
        """
        try:
            if isinstance(text, str):
                steps = steps_of(self._level.candidate_of_text(self.task, text))
            elif text is not None:
                raise MalformedError("text is a text.")
            return read_candidate(steps, self._level.steps, STEPS_MOST)
        except MalformedError as error:
            raise ToolError("bad_request", f"{error}"[:500]) from None
        except PlanishError as error:
            raise ToolError("unknown_step", f"{error}"[:500]) from None


RULES = (
    "A candidate is a list of steps from the unchanged program, or a text where `describe` has `text`.",
    "It is verified on inputs of the service before it is timed, and afterwards.",
    "The task fixes shapes, inputs, tolerance, timer and baseline; nothing that is submitted changes them.",
    "One candidate is timed at a time on this machine, whoever submits it.",
    "Each candidate is measured once; submitted again, it has the same answer.",
    "A single measurement is never conclusive, unless it is exact.",
    "compare measures the best again, interleaved with the baseline, in fresh processes.",
)


def _default_space(level: Level, task: Task) -> str:
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
