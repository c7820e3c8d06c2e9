"""Runs as pages show them: a line of a list, or a run with its trials in columns."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planish.core import Failed, Measured, Objective, PlanishError, StoreError, Trial
from planish.core.arguments import as_options
from planish.core.registry import level_named
from planish.core.wording import interval, multiple, title
from planish.dashboard.source import Source, Stamp
from planish.dashboard.trial_columns import TrialColumns
from planish.report.page import TrialCounts
from planish.store import Run, StoredTask
from planish.tuning.comparison import InterimRatio
from planish.tuning.comparison_codec import decode, decode_interim, decode_notes, is_interim
from planish.tuning.result import Result
from planish.tuning.verdict import RunVerdict, verdict_of

COMPARING = "comparing"
"""Status of a run whose search is over, while its best candidates are compared with the baseline."""
_FOLLOWED = 16
"""Runs whose trials are kept in memory."""


@dataclass(frozen=True)
class RunSummary:
    """A run as a list of runs has it.

    Args:
        id: the run's.
        run: the run; None where it cannot be read.
        task: what it tunes; None where that cannot be read.
        verdict: of the comparison; None where it is not known.
        value: the winner's, or the best so far; None where nothing was measured.
        gain: how many times better than the baseline; None where they were not compared.
        status: the run's; "comparing" once its search is over and the comparison goes on.
        error: why it cannot be read, in one line.
    """

    id: str
    run: Run | None = None
    task: StoredTask | None = None
    verdict: RunVerdict | None = None
    value: float | None = None
    gain: float | None = None
    status: str = ""
    error: str = ""

    @property
    def program(self) -> str:
        """Return the line that names the program."""
        return title(self.task.program) if self.task else ""

    @property
    def level(self) -> str:
        """Return the name of the level; empty where it is not known."""
        return self.task.level if self.task else ""

    @property
    def objective(self) -> Objective | None:
        """Return the leading objective; None where it is not known."""
        return self.task.objectives[0] if self.task else None


@dataclass
class FollowedRun:
    """A run with all that its page shows.

    Args:
        stamp: of the run as it was read.
        result: with the best trial; the others are in the columns.
        columns: the trials.
        whole: whether all trials that were stored are in the columns.
        interim: what is known of a comparison that goes on.
        status: the run's; "comparing" once its search is over and the comparison goes on.
    """

    stamp: Stamp
    result: Result
    columns: TrialColumns
    whole: bool
    interim: Sequence[InterimRatio]
    status: str

    @property
    def run(self) -> Run:
        """Return the run itself."""
        return self.result.run

    @property
    def best(self) -> float | None:
        """Return the best value so far; None where nothing was measured."""
        lead, best = self.result.objective, self.columns.best
        cost = None if best is None else best.cost(lead)
        return None if cost is None else lead.cost(cost)

    @property
    def baseline(self) -> float | None:
        """Return the baseline's value in the search, else in the comparison; None where it is not known."""
        compared = self.result.comparison
        known = self.columns.baseline_value
        return compared.baseline.lead.median if known is None and compared else known

    @property
    def counts(self) -> TrialCounts:
        """Return the counts of its trials."""
        columns = self.columns
        with columns.busy:
            return TrialCounts(len(columns), columns.failed, columns.cached, columns.sources)

    @property
    def verdict(self) -> RunVerdict:
        """Return the verdict; of a run that is under way, how it is going."""
        return verdict_so_far(self.result, self.interim, self.status)


def verdict_so_far(result: Result, interim: Sequence[InterimRatio], status: str) -> RunVerdict:
    """Return the verdict on a run; of one that is under way, how it is going.

    Args:
        result: of the run.
        interim: what is known of a comparison that goes on.
        status: as of a `FollowedRun`.
    """
    found = verdict_of(result)
    if status not in ("running", COMPARING):
        return found
    if result.best_trial is None:
        return replace(found, kind="open")
    if status == "running":
        grounds = found.grounds if result.finalists else found.grounds[:-1]
        return replace(found, kind="open", headline="The search is under way", grounds=grounds)
    gains = [(each.name, each.ratio.gain(result.objective)) for each in interim]
    if result.finalists:
        gains = [(result.finalists[0].name, result.finalists[0].lead.gain)]
    if not gains:
        return RunVerdict("open", "The comparison with the baseline is under way", ())
    name, gain = max(gains, key=lambda each: each[1].value)
    text = f"{name}: {multiple(gain.value)} the baseline, 95 % confidence interval {interval(gain)}"
    return RunVerdict("open", "The comparison with the baseline is under way", (text,))


@dataclass
class Runs:
    """Runs of a store, read once and again when they have changed; threads may share it.

    Args:
        source: the store.
    """

    source: Source
    _summaries: dict[str, tuple[Stamp, RunSummary]] = field(
        default_factory=dict[str, tuple[Stamp, RunSummary]]
    )
    _tasks: dict[str, StoredTask] = field(default_factory=dict[str, StoredTask])
    _followed: OrderedDict[str, FollowedRun] = field(default_factory=OrderedDict[str, FollowedRun])
    _busy: threading.RLock = field(default_factory=threading.RLock)

    def summaries(self, seconds: float) -> tuple[list[RunSummary], bool]:
        """Return a summary of each run, the newest first, and whether all are as they are stored now.

        Args:
            seconds: after which the rest is left for the next call.

        Raises:
            StoreError: the store cannot be read.
        """
        end, found, whole = time.monotonic() + seconds, list[RunSummary](), True
        with self._busy:
            stamps = self.source.stamps
            self._summaries = {key: kept for key, kept in self._summaries.items() if key in stamps}
            for run_id, stamp in stamps.items():
                known, summary = self._summaries.get(run_id, (None, RunSummary(run_id)))
                if known != stamp:
                    new = self._summary(run_id, end - time.monotonic())
                    if new is None:
                        whole = False
                    else:
                        summary = new
                        self._summaries[run_id] = stamp, new
                found.append(summary)
        return found, whole

    def _summary(self, run_id: str, seconds: float) -> RunSummary | None:
        """Read a summary; None where the time does not suffice."""
        run = task = None
        if seconds <= 0:
            return None
        try:
            run = self.source.reader.run(run_id)
            task = self._task(run.task_key)
            result, interim, status = self._result(run, task)
            if result.finalists:
                # To read the program, for its baseline, takes longer than all else: it is what measured as
                # the baseline did. And the best trial has the values that the comparison keeps.
                base = result.comparison.baseline.lead if result.comparison else None
                same = next((each.candidate for each in result.finalists if each.lead == base), None)
                first = result.finalists[0]
                best = Trial(first.candidate, Measured(dict(first.trial)))
                result.at_hand(baseline_candidate=same, best_trial=best)
            else:
                followed = self.follow(run_id, seconds)
                if not followed.whole:
                    return None
                result = followed.result
        except PlanishError as error:
            status = run.status if run else "damaged"
            return RunSummary(run_id, run, task, status=status, error=as_options(str(error)))
        value = result.value if result.best_trial else None
        verdict = verdict_so_far(result, interim, status)
        return RunSummary(run_id, run, task, verdict, value, result.gain, status)

    def follow(self, run_id: str, seconds: float) -> FollowedRun:
        """Return a run as it is stored now, with the trials that can be read within a time in seconds.

        Raises:
            StoreError: there is no such run, or it is damaged, or the store cannot be read.
            PlanishError: its level is not installed, or lacks a step.
        """
        with self._busy:
            stamp = self.source.stamps.get(run_id)
            if stamp is None:
                raise StoreError(f"no run {run_id} in the store {self.source.label}", "It may be deleted.")
            known = self._followed.get(run_id)
            if known is None or known.stamp != stamp or not known.whole:
                known = self._read(run_id, stamp, known, seconds)
                self._followed[run_id] = known
            self._followed.move_to_end(run_id)
            while len(self._followed) > _FOLLOWED:
                self._followed.popitem(last=False)
            return known

    def _read(self, run_id: str, stamp: Stamp, known: FollowedRun | None, seconds: float) -> FollowedRun:
        run = self.source.reader.run(run_id)
        task = self._task(run.task_key)
        result, interim, status = self._result(run, task)
        if known is not None:
            read = {"task", "baseline_candidate"} & vars(known.result).keys()
            result.at_hand(**{name: getattr(known.result, name) for name in read})
        columns = known.columns if known else self._columns(result)
        whole = columns.follow(self.source.reader, seconds)
        if len(columns) > run.trials and len(columns) > self.source.reader.run(run_id).trials:
            # Damaged trials were deleted, to be measured again.
            columns = self._columns(result)
            whole = columns.follow(self.source.reader, seconds)
        return FollowedRun(stamp, result.at_hand(**_of_columns(columns)), columns, whole, interim, status)

    def _columns(self, result: Result) -> TrialColumns:
        steps, objectives = result.level.steps, result.stored.objectives
        return TrialColumns(result.run.id, objectives, steps, result.baseline_candidate)

    def _result(self, run: Run, task: StoredTask) -> tuple[Result, Sequence[InterimRatio], str]:
        """Return a run's result, what is known of a comparison that goes on, and the status."""
        level = level_named(task.level)
        rows = self.source.reader.result_rows(run.id, level.steps)
        found = Result(run, task, decode(rows, task.objectives), decode_notes(rows), store=self.source.reader)
        found = found.at_hand(level=level)
        if run.status != "running":
            return found, (), run.status
        # The first session has a comparison once its search is over; a later one has that of the one before.
        ends = is_interim(rows) or (found.comparison is not None and not run.seconds)
        return found, decode_interim(rows), COMPARING if ends else run.status

    def _task(self, key: str) -> StoredTask:
        if key not in self._tasks:
            self._tasks[key] = self.source.reader.task(key)
        return self._tasks[key]


def _of_columns(columns: TrialColumns) -> dict[str, Any]:
    """Return what a result has of its trials: the best, or where there is none, how each failed."""
    if columns.best is not None:
        return {"best_trial": columns.best}
    failed = [
        trial
        for cause in columns.causes
        for trial in [Trial(cause.first, Failed(cause.stage, cause.reason))] * cause.count  # pyright: ignore[reportArgumentType]
    ]
    return {"best_trial": None, "stored_trials": failed}
