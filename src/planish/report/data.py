"""Data of a report: a run, its trials and result, as read from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planish.core import (
    Candidate,
    Failed,
    Level,
    Objective,
    PlanishError,
    Task,
    Trial,
    describe,
)
from planish.store.rows import Run, StoredTask
from planish.tuning.comparison import Comparison, Finalist
from planish.tuning.result import StoredRun, read_run

if TYPE_CHECKING:
    from planish.store.reader import Reader


@dataclass(frozen=True)
class ReportData:
    """A run with its task, trials and result.

    Args:
        stored: the run.
        best: the search's best trial; None where nothing was measured.
        baseline: None where the level does not read the program any more.
        winner: what the winner does, title to text.
        descriptions: the same of each finalist, where there are several objectives.
        level_version: of the level that describes the winner.
    """

    stored: StoredRun
    best: Trial | None
    baseline: Candidate | None
    winner: Mapping[str, str]
    descriptions: Sequence[Mapping[str, str]]
    level_version: str

    @property
    def run(self) -> Run:
        """Return what was asked for."""
        return self.stored.run

    @property
    def task(self) -> StoredTask:
        """Return what was tuned."""
        return self.stored.task

    @property
    def trials(self) -> Sequence[Trial]:
        """By index."""
        return self.stored.trials

    @property
    def comparison(self) -> Comparison | None:
        """None where nothing was compared."""
        return self.stored.comparison

    @property
    def finalists(self) -> Sequence[Finalist]:
        """The best first; empty where nothing was compared."""
        return self.stored.finalists

    @property
    def notes(self) -> Sequence[str]:
        """Return how the run was measured, or why nothing was compared, in sentences."""
        return self.stored.notes

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.task.objectives[0]

    @property
    def front(self) -> Comparison | None:
        """The comparison of a run with several objectives."""
        return self.comparison if len(self.task.objectives) > 1 else None

    @property
    def keeps_baseline(self) -> bool:
        """Return whether the result is the baseline itself, since nothing was better."""
        return bool(self.finalists) and self.finalists[0].candidate == self.baseline

    @property
    def failed(self) -> int:
        """Return how many trials failed."""
        return sum(isinstance(trial.outcome, Failed) for trial in self.trials)

    @property
    def cached(self) -> int:
        """Return how many trials' outcomes were taken from the store."""
        return sum(trial.cached for trial in self.trials)


def read_report_data(store: Reader, run_id: str, level: Level) -> ReportData:
    """Read a run; nothing is written.

    Args:
        store: where it is; it may be read-only.
        run_id: the id, or a unique beginning of it.
        level: the level of its task.

    Raises:
        StoreError: there is no such run, or the store cannot be read.
        ProgramError: the level does not have a step of a trial.
    """
    stored = read_run(store, run_id, level)
    finalists = stored.finalists
    several = [f.candidate for f in finalists] if len(stored.task.objectives) > 1 else []
    analyses = {f.candidate: f.analysis for f in finalists}
    bound, refused = _bound(stored, level)
    baseline = None if bound is None else level.baseline(bound)
    best = stored.best(baseline)
    winner = finalists[0].candidate if finalists else best.candidate if best else None
    wanted = several or ([] if winner is None else [winner])
    notes = stored.notes if finalists else None
    texts = [_described(bound, refused, each, level, analyses.get(each, {}), notes) for each in wanted]
    described = texts if several else ()
    return ReportData(stored, best, baseline, texts[0] if texts else {}, described, level.version)


def _bound(stored: StoredRun, level: Level) -> tuple[Task | None, Mapping[str, str]]:
    """Read a task's program again; a program that the level refuses today must not stop us: gives why."""
    try:
        return stored.bind(level), {}
    except PlanishError as error:
        return None, {f"not described by level '{level.name}'": str(error)}


def _described(
    task: Task | None,
    refused: Mapping[str, str],
    candidate: Candidate,
    level: Level,
    analysis: Mapping[str, Any],
    notes: Sequence[str] | None,
) -> Mapping[str, str]:
    if task is not None:
        try:
            return describe(level, task, candidate, analysis, notes)
        except PlanishError as error:
            refused = {f"not described by level '{level.name}'": str(error)}
    return {**refused, "steps": "\n".join(map(str, candidate.steps))}
