"""All that a report tells of a run, as read from the store."""

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
    best_harmless,
    describe,
)
from planish.report.curve import best_of
from planish.results.comparison import Comparison, Finalist
from planish.results.result import read_comparison
from planish.store.records import Run, StoredTask

if TYPE_CHECKING:
    from planish.store.store_reader import Reader


@dataclass(frozen=True)
class ReportData:
    """A run with its task, trials and result.

    Args:
        run: what was asked for.
        task: what was tuned.
        trials: by index.
        comparison: None where nothing was compared.
        best: the search's best trial; None where nothing was measured.
        baseline: None where the level does not read the program any more.
        winner: what the winner does, title to text.
        told: the same of each finalist, where there are several objectives.
        level_version: of the level that describes the winner.
    """

    run: Run
    task: StoredTask
    trials: Sequence[Trial]
    comparison: Comparison | None
    best: Trial | None
    baseline: Candidate | None
    winner: Mapping[str, str]
    told: Sequence[Mapping[str, str]]
    level_version: str

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.task.objectives[0]

    @property
    def finalists(self) -> Sequence[Finalist]:
        """The best first; empty where nothing was compared."""
        return self.comparison.finalists if self.comparison else ()

    @property
    def front(self) -> Comparison | None:
        """The comparison of a run with several objectives."""
        return self.comparison if len(self.task.objectives) > 1 else None

    @property
    def notes(self) -> Sequence[str]:
        """How the run was measured, in sentences; empty where nothing was compared."""
        return self.comparison.notes if self.comparison else ()

    @property
    def keeps_baseline(self) -> bool:
        """Whether the result is the baseline itself, since nothing was better."""
        return bool(self.finalists) and self.finalists[0].candidate == self.baseline

    @property
    def failed(self) -> int:
        """How many trials failed."""
        return sum(isinstance(trial.outcome, Failed) for trial in self.trials)

    @property
    def cached(self) -> int:
        """How many trials' outcomes were taken from the store."""
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
    run = store.run(run_id)
    task = store.task(run.task_key)
    trials = store.run_trials(run.id, level.steps)
    comparison = read_comparison(store, run.id, level, task.objectives)
    finalists = comparison.finalists if comparison else ()
    several = [f.candidate for f in finalists] if len(task.objectives) > 1 else []
    figures = {f.candidate: f.figures for f in finalists}
    bound, refused = _bound(task, level)
    baseline = None if bound is None else level.baseline(bound)
    best = _best(trials, task.objectives, baseline)
    winner = finalists[0].candidate if finalists else best.candidate if best else None
    wanted = several or ([] if winner is None else [winner])
    told = [_described(bound, refused, candidate, level, figures.get(candidate, {})) for candidate in wanted]
    return ReportData(
        run,
        task,
        trials,
        comparison,
        best,
        baseline,
        told[0] if told else {},
        told if several else (),
        level.version,
    )


def _best(
    trials: Sequence[Trial], objectives: Sequence[Objective], baseline: Candidate | None
) -> Trial | None:
    """Find the best trial; of several objectives, of those that are worse than the baseline in none."""
    if baseline is None or len(objectives) == 1:
        return best_of(trials, objectives[0])
    return best_harmless(trials, objectives, baseline)


def _bound(stored: StoredTask, level: Level) -> tuple[Task | None, Mapping[str, str]]:
    """Read a task's program again; a program that the level refuses today must not stop us: gives why."""
    try:
        return stored.bind(level.read(stored.program, stored.target)), {}
    except PlanishError as error:
        return None, {f"not described by level '{level.name}'": str(error)}


def _described(
    task: Task | None,
    refused: Mapping[str, str],
    candidate: Candidate,
    level: Level,
    figures: Mapping[str, Any],
) -> Mapping[str, str]:
    if task is not None:
        try:
            return describe(level, task, candidate, figures)
        except PlanishError as error:
            refused = {f"not described by level '{level.name}'": str(error)}
    return {**refused, "steps": "\n".join(map(str, candidate.steps))}
