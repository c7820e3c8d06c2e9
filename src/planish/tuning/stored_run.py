"""Stored runs: the task, the trials and the comparison of a run, read when they are first asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

from planish.core import Candidate, Failed, Level, Objective, PlanishError, StoreError, Task, Trial
from planish.core.front import best_non_regressing
from planish.core.registry import level_named
from planish.store import Reader, Run, StoredTask
from planish.tuning.comparison import Comparison, Finalist


@dataclass(frozen=True, repr=False)
class StoredRun:
    """A run with its trials and its comparison, which a verdict is made from.

    What is not at hand is read when it is first asked for: the program is parsed, and the trials are read
    from the store, which is opened again for it where it was closed.

    Args:
        run: what was asked for, how it ended, and where its time went.
        stored: what was tuned, with the program as its text, which the level may not read any more.
        comparison: of the best few with the baseline; None where it was left out.
        notes: how candidates were measured, or why nothing was compared, in sentences.
        store: where the trials are; None after pickling.
    """

    run: Run
    stored: StoredTask
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    store: Reader | None = field(default=None, compare=False, repr=False)

    def at_hand(self, **known: Any) -> Self:
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
    def stored_trials(self) -> Sequence[Trial]:
        """All trials by index, from the store.

        Raises:
            StoreError: the store cannot be read, or the result was pickled.
            ProgramError: the level does not have a step of a trial.
        """
        if self.store is None:
            what = f"the trials of run {self.run.id} are not at hand: the result was pickled"
            raise StoreError(what, f"Read it from the store: planish.load_run('{self.run.id}').")
        with self.store.reading() as store:
            return store.run_trials(self.run.id, self.level.steps)

    @cached_property
    def best_trial(self) -> Trial | None:
        """The best of the search; None where nothing was measured.

        Of several objectives, it is the best of those worse than the baseline in none, which the baseline is.
        """
        return best_non_regressing(self.stored_trials, self.stored.objectives, self.baseline_candidate)

    @cached_property
    def failures(self) -> Mapping[str, int]:
        """Count of the candidates that failed, by "stage: reason"."""
        outcomes = [trial.outcome for trial in self.stored_trials]
        return Counter(f"{each.stage}: {each.reason}" for each in outcomes if isinstance(each, Failed))

    @property
    def failed(self) -> int:
        """Return how many trials failed."""
        return sum(self.failures.values())

    @property
    def cached(self) -> int:
        """Return how many trials' outcomes were taken from the store."""
        return sum(trial.cached for trial in self.stored_trials)

    @property
    def stopped(self) -> bool:
        """Return whether the user ended the search."""
        return self.run.status == "stopped"

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

    @cached_property
    def baseline_candidate(self) -> Candidate | None:
        """The baseline; None where the level does not read the program any more."""
        try:
            return self.level.baseline(self.task)
        except PlanishError:
            return None

    @property
    def keeps_baseline(self) -> bool:
        """Return whether the result is the baseline, since nothing was better."""
        return bool(self.finalists) and self.finalists[0].candidate == self.baseline_candidate
