"""Knowledge of other programs in a store, and the warm start that a level makes of it."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, TypeVar

from planish.core import (
    Candidate,
    Level,
    Objective,
    Outcomes,
    PlanishError,
    SearchContext,
    Task,
    Trial,
    Tried,
    candidate_from_json,
)
from planish.store import Reader, StoredTask

_log = logging.getLogger("planish")


_Space = TypeVar("_Space")


@dataclass(frozen=True)
class KnownTask:
    """A task of a level that was run.

    Args:
        stored: the task, whose program is still a text.
        level: of the task.
        store: has its trials.
    """

    stored: StoredTask
    level: Level[Any]
    store: Reader

    @property
    def program(self) -> str:
        """The program's canonical text."""
        return self.stored.program

    @property
    def processor(self) -> str:
        """The processor that it was run on; empty where that is not known."""
        return self.stored.target.processor

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.stored.objectives[0]

    def trials(self) -> Sequence[Trial]:
        """Read its trials."""
        return self.store.trials(self.stored.key, self.level.steps)

    def space(self, needed: type[_Space], name: str = "") -> _Space | None:
        """Return the first of its spaces that offers what is needed.

        Args:
            needed: a capability of spaces.
            name: of the space; empty for any.

        Returns:
            The space; None where there is none, or the task cannot be read, as where its files are gone.
        """
        level = self.level
        try:
            task = self.stored.bind(level.read(self.program, self.stored.target))
            spaces = (level.space(task, each) for each in level.spaces if name in ("", each))
            return next((space for space in spaces if isinstance(space, needed)), None)
        except PlanishError:
            return None


def known_tasks(store: Reader, level: Level[Any]) -> list[KnownTask]:
    """List the tasks of a level that were run, the oldest run first.

    What another version of the level measured counts no longer. It is left out, and a warning says how much.
    """
    trials = dict[str, int]()
    for run in reversed(store.runs()):
        trials[run.task_key] = trials.get(run.task_key, 0) + run.trials
    tasks = [task for key in trials if (task := store.task(key)).level == level.name]
    old = [task for task in tasks if task.level_version != level.version]
    if old:
        _log.warning(
            "skipped %d trials of %d tasks, which other versions of the level '%s' measured",
            sum(trials[task.key] for task in old),
            len(old),
            level.name,
        )
    return [KnownTask(task, level, store) for task in tasks if task.level_version == level.version]


MOST_TRIALS = 4000
"""Trials after which no further program is read: a search is not to wait long for what is stored."""
MOST_PROGRAMS = 24


@dataclass(frozen=True)
class Past:
    """Trials on one program.

    Args:
        program: its canonical text.
        objective: the leading one.
        baseline: its value of the baseline.
        trials: all that were stored, failed ones too.
    """

    program: str
    objective: Objective
    baseline: float
    trials: Sequence[Trial]

    def ratio(self, trial: Trial) -> float | None:
        """Return a trial's cost over the baseline's; less is better. None where it failed."""
        cost = trial.cost(self.objective)
        if cost is None:
            return None
        ratio = cost / self.objective.cost(self.baseline)
        if self.objective.direction == "down":
            return ratio
        return 1 / ratio if ratio else math.inf


def context_of(
    store: Reader, level: Level, task: Task, before: float = math.inf, warm_start: Sequence[Any] | None = None
) -> SearchContext:
    """Return the warm start of a search.

    Args:
        store: what is known of other programs.
        level: the task's.
        task: what is to be tuned.
        before: when the run began, in seconds since the epoch: one that is resumed knows what it knew then,
            so that it proposes what it would have without the interruption.
        warm_start: what it began with then, as `stored` returns it; None where the run begins now.
    """
    tried = cache(partial(tried_elsewhere, store, level, task, before))
    winners = cache(partial(winners_elsewhere, store, level, task, before))
    context = SearchContext(history=tried, winners=winners)
    if warm_start is not None:
        known = [candidate_from_json(each, level.steps) for each in warm_start]
        return replace(context, warm_start=known)
    return replace(context, warm_start=level.warm_start(task, context))


def stored(context: SearchContext) -> list[Any]:
    """Return the warm start of a run as JSON, as it is stored with the run."""
    return [[step.to_json() for step in candidate.steps] for candidate in context.warm_start]


def tried_elsewhere(
    store: Reader,
    level: Level,
    task: Task,
    before: float = math.inf,
    *,
    most_trials: int = MOST_TRIALS,
    most_programs: int = MOST_PROGRAMS,
) -> Tried:
    """Return the trials of other programs on a task's target, by its leading objective.

    It is of the programs that were tuned last, so many that they have `most_trials` and
    are `most_programs`, and as the
    store was `before` a time, in seconds since the epoch.
    """
    found: dict[str, Outcomes] = {}
    left = most_trials
    for each in past(store, level, task, before):
        if each.program != task.program.text:
            found[each.program] = [(trial.candidate, each.ratio(trial)) for trial in each.trials]
            left -= len(each.trials)
        if left <= 0 or len(found) == most_programs:
            break
    return found


MOST_WINNERS = 96
"""Finalists that are read: those of some fifty runs, in a few milliseconds."""


def winners_elsewhere(store: Reader, level: Level, task: Task, before: float = math.inf) -> Tried:
    """Return the finalists of runs for other programs that were better than their baselines.

    Args:
        store: open for reading, at least.
        level: the task's.
        task: its target and its leading objective are those of the runs.
        before: only runs that had ended at that time, in seconds since the epoch.
    """
    found = dict[str, list[tuple[Candidate, float | None]]]()
    for program, finalist in store.winners(task, level.steps, before, MOST_WINNERS):
        found.setdefault(program, []).append((finalist.candidate, 1 / finalist.ratio))
    return found


def past(store: Reader, level: Level, task: Task, before: float = math.inf) -> Iterator[Past]:
    """Yield what was tried on each program of a level, on a task's target and with its leading objective.

    A program whose baseline was not measured is passed over: there is nothing to compare with. So is what
    another version of the level measured, which may have had other steps.

    Args:
        store: open for reading, at least.
        level: the task's.
        task: its program counts too.
        before: only what was there at that time, in seconds since the epoch.
    """
    objective, baseline = task.objectives[0], level.baseline(task)
    # The newest task first.
    for key in dict.fromkeys(run.task_key for run in store.runs() if run.started < before):
        stored = store.task(key)
        if _aim(stored) != _aim(task):
            continue
        trials = [trial for trial in store.trials(stored.key, level.steps) if trial.time < before]
        values = [t.cost(objective) for t in trials if t.candidate.hash == baseline.hash]
        # Neither missing nor 0: ratios to it are what programs are compared by.
        known = next((value for value in values if value), None)
        if known is not None:
            yield Past(stored.program, objective, objective.cost(known), trials)


def _aim(task: Task | StoredTask) -> tuple[str, ...]:
    """Return the key that tasks share when one can be learned from the others."""
    return task.level, task.level_version, task.target.text, task.objectives[0].name
