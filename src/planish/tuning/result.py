"""Results of runs: what was asked for, what came of it, and what can be done with the winner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from planish.core import (
    Candidate,
    Failed,
    Level,
    Measured,
    Objective,
    PlanishError,
    StoreError,
    Task,
    Trial,
    best_non_regressing,
    describe,
)
from planish.levels.registry import first_exportable, level_named, name_files
from planish.store import Reader, Run, StoredTask
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.comparison_codec import decode, decode_notes

OF_CALLS = {"selects": "einsum"}
"""Options of a run that holds the selected backend of an einsum, by whole calls; no search resumes it."""


def read_comparison(
    store: Reader, run_id: str, level: Level, objectives: Sequence[Objective]
) -> Comparison | None:
    """Look up the comparison of a run; None where there was none.

    Args:
        store: open for reading, at least.
        run_id: the whole id.
        level: of the run's task.
        objectives: of the run's task.

    Raises:
        StoreError: it is damaged.
        ProgramError: the level lacks a step.
    """
    return decode(store.result_rows(run_id, level.steps), objectives)


def known_baseline(store: Reader, task: Task) -> float | None:
    """Return the baseline's value of the newest comparison for a task; None where there is none."""
    level = level_named(task.level)
    for run in store.runs(task.key):
        with suppress(StoreError):  # it is only shown: what cannot be read must not keep a run from beginning
            if found := read_comparison(store, run.id, level, task.objectives):
                return found.baseline.lead.median
    return None


@dataclass(frozen=True)
class Result:
    """A run with its result; it describes, exports and calls the program by its candidate.

    What is not at hand is read when it is first asked for: the program is parsed, and the trials are read
    from the store, which must be open then.

    Args:
        run: what was asked for, how it ended, and where its time went.
        stored: what was tuned, with the program as its text, which the level may not read any more.
        comparison: of the best few with the baseline; None where it was left out.
        notes: how candidates were measured, or why nothing was compared, in sentences.
        pick: which of the finalists is meant, from 1; without any it is the search's best.
        store: where the trials are; None after pickling.
    """

    run: Run
    stored: StoredTask
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    pick: int = 1
    store: Reader | None = field(default=None, compare=False, repr=False)

    def at_hand(self, **known: Any) -> Result:
        """Keep values of properties, so that they are neither read nor computed again."""
        vars(self).update(known)
        return self

    def __getstate__(self) -> dict[str, Any]:
        # Without the store, and without what was computed, as the function, which is machine code.
        known = {name: getattr(self, name) for name in ("task", "best_trial", "failures")}
        return {each.name: getattr(self, each.name) for each in fields(self)} | known | {"store": None}

    @cached_property
    def level(self) -> Level:
        """The level of its task."""
        return level_named(self.stored.level)

    @cached_property
    def task(self) -> Task:
        """The task that was tuned.

        Raises:
            ProgramError: the level does not read the program any more.
        """
        return self.stored.bind(self.level.read(self.stored.program, self.stored.target))

    @cached_property
    def trials(self) -> Sequence[Trial]:
        """All trials by index, from the store.

        Raises:
            StoreError: the store cannot be read, or the result was pickled.
            ProgramError: the level does not have a step of a trial.
        """
        if self.store is None:
            raise StoreError(f"the trials of run {self.run.id} are not at hand", "Read it from the store.")
        return self.store.run_trials(self.run.id, self.level.steps)

    @cached_property
    def best_trial(self) -> Trial | None:
        """The best of the search; None where nothing was measured.

        Of several objectives, it is the best of those worse than the baseline in none, which the baseline is.
        """
        return best_non_regressing(self.trials, self.stored.objectives, self.baseline_candidate)

    @cached_property
    def failures(self) -> Mapping[str, int]:
        """Count of the candidates that failed, by "stage: reason"."""
        outcomes = [trial.outcome for trial in self.trials]
        return Counter(f"{each.stage}: {each.reason}" for each in outcomes if isinstance(each, Failed))

    @property
    def failed(self) -> int:
        """Return how many trials failed."""
        return sum(self.failures.values())

    @property
    def cached(self) -> int:
        """Return how many trials' outcomes were taken from the store."""
        return sum(trial.cached for trial in self.trials)

    @property
    def stopped(self) -> bool:
        """Return whether the user ended the search."""
        return self.run.status == "stopped"

    @property
    def best(self) -> Trial:
        """The best trial of the search.

        Raises:
            PlanishError: no candidate was measured.
        """
        if self.best_trial is None:
            raise PlanishError(f"run {self.run.id} has no result: no candidate was measured", "Tune again.")
        return self.best_trial

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.stored.objectives[0]

    @property
    def finalists(self) -> tuple[Finalist, ...]:
        """All of the comparison, the best first; empty where it was left out."""
        return self.comparison.finalists if self.comparison else ()

    @property
    def front(self) -> Comparison | None:
        """The comparison of a run with several objectives."""
        return self.comparison if len(self.stored.objectives) > 1 else None

    @property
    def baseline(self) -> Compared | None:
        """Return how the baseline did in the comparison; None where that was left out."""
        return self.comparison.baseline if self.comparison else None

    @cached_property
    def baseline_candidate(self) -> Candidate | None:
        """The baseline; None where the level does not read the program any more."""
        try:
            return self.level.baseline(self.task)
        except PlanishError:
            return None

    @property
    def keeps_baseline(self) -> bool:
        """Return whether the result is the baseline itself, since nothing was better."""
        return bool(self.finalists) and self.finalists[0].candidate == self.baseline_candidate

    @property
    def finalist(self) -> Finalist | None:
        """The finalist that is meant; None where there was no comparison."""
        return self.finalists[self.pick - 1] if self.finalists else None

    @property
    def candidate(self) -> Candidate:
        """The winner, or the finalist that was picked; the search's best if there was no comparison."""
        return self.finalist.candidate if self.finalist else self.best.candidate

    @property
    def contender(self) -> Candidate:
        """The best candidate apart from the baseline; where there is no other one, the result."""
        found = self.comparison.contender(self.baseline_candidate) if self.comparison else None
        return found.candidate if found else self.candidate

    @property
    def exported(self) -> Candidate:
        """Return what `export` writes: the candidate; where that is a library's call, the best other one.

        Where a compiler may be wrong for the program, the comparison alone verifies on inputs that the search
        did not see: without it the baseline is written.
        """
        if not self.finalists and not self.level.exports_unverified:
            return self.level.baseline(self.task)
        return first_exportable(self.level, [self.candidate, *(each.candidate for each in self.finalists)])

    @property
    def value(self) -> float:
        """The candidate's value of the leading objective."""
        if self.finalist is not None:
            return self.finalist.lead.median
        assert isinstance(self.best.outcome, Measured)
        return self.best.outcome.values[self.objective.name]

    @property
    def gain(self) -> float | None:
        """Return how many times better than the baseline the candidate is; None if they were not compared."""
        return self.finalist.lead.gain.value if self.finalist else None

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Function that computes the program by the candidate, of the program's inputs in their order.

        Raises:
            PlanishError: programs of this level cannot be called from Python.
        """
        return self.level.function(self.task, self.candidate)

    def __call__(self, *inputs: Any) -> Any:
        """Compute the program by the candidate: `function(*inputs)`."""
        return self.function(*inputs)

    def describe(self) -> Mapping[str, str]:
        """Show what it does: title to text."""
        return self._describe(self.candidate, self.finalist.analysis if self.finalist else {})

    def _describe(self, candidate: Candidate, analysis: Mapping[str, Any]) -> Mapping[str, str]:
        return describe(self.level, self.task, candidate, analysis, self.notes if self.finalists else None)

    @cached_property
    def description(self) -> Mapping[str, str]:
        """Title to text of what the candidate does; its steps alone where the level refuses the program.

        Empty where nothing was measured.
        """
        if self.finalist is None and self.best_trial is None:
            return {}
        return self._description(self.candidate, self.finalist.analysis if self.finalist else {})

    @cached_property
    def descriptions(self) -> Sequence[Mapping[str, str]]:
        """The same of each finalist, where there are several objectives."""
        found = self.finalists if self.front else ()
        return [self._description(each.candidate, each.analysis) for each in found]

    def _description(self, candidate: Candidate, analysis: Mapping[str, Any]) -> Mapping[str, str]:
        try:
            return self._describe(candidate, analysis)
        except PlanishError as error:  # must not keep the rest from being shown
            refused = {f"not described by level '{self.level.name}'": str(error)}
            return {**refused, "steps": "\n".join(map(str, candidate.steps))}

    def export(self, path: Path) -> Sequence[Path]:
        """Write `exported`, for use without planish, into a folder; gives the files."""
        return self.level.export(self.task, self.exported, path)


def read_result(
    store: Reader, run_id: str, pick: int = 1, files: Iterable[Path] = (), level: Level | None = None
) -> Result:
    """Look up a run and its result; nothing is written.

    Args:
        store: open for reading, at least, and as long as the result reads from it.
        run_id: the run's id, or a unique beginning of it.
        pick: which of the finalists is meant, from 1, in the order that they are shown.
        files: that the program refers to; those are known which were named here before, as by tuning them.
        level: that of its task; it is looked up by name where none is given.

    Raises:
        StoreError: there is no such run, or the store cannot be read.
        PlanishError: its level is not installed, or there are not so many finalists.
        ProgramError: the level lacks a step.
    """
    run = store.run(run_id)
    task = store.task(run.task_key)
    level = level or level_named(task.level)
    name_files(level, files)
    rows = store.result_rows(run.id, level.steps)
    found = Result(run, task, decode(rows, task.objectives), decode_notes(rows), pick, store)
    if not 1 <= pick <= max(1, count := len(found.finalists)):
        what = f"run {run.id} has no #{pick}: {count} were compared"
        raise PlanishError(what, f"See 'planish show {run.id}'.")
    return found.at_hand(level=level)
