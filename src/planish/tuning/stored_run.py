"""Stored runs: the task, the trials with their statistics, and the comparison, read when first asked for."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self

from planish.core import Candidate, Failed, Level, Measured, Objective, PlanishError, StoreError, Task, Trial
from planish.core.front import best_non_regressing
from planish.core.registry import level_named
from planish.store import Reader, Run, StoredTask
from planish.tuning.comparison import Comparison, Finalist

PAUSE_S = 60.0
"""Time without a trial's end, beyond the next trial's own work, after which a run counts as not under way."""

MEANING: Mapping[str, str] = {
    "transform": "applying the steps to the program",
    "build": "making code",
    "verify": "comparing the output with the reference",
    "wait": "waiting for other timed runs on the machine",
    "run": "timed runs",
    "worker": "starting worker processes, and all that belongs to no other stage",
    "load": "reading the program and creating its space, before the search",
    "search": "choosing what to try next",
    "model": "training cost models, computing features and predicting costs",
    "store": "reading and writing the store",
    "workers": "starting the first worker processes",
    "minimize": "removing steps that change nothing from the front",
    "compare": "measuring the finalists and the baseline again at the end",
    "cross_check": "cross-checking their outputs",
    "eval_heldout": "scoring the finalists on unseen data",
    "ablate": "measuring the effects of single steps",
}
"""Descriptions of stages, in the order that they are shown."""


@dataclass(frozen=True)
class StageTime:
    """The time of one stage.

    Args:
        stage: its name.
        total_s: seconds over the run, of all workers together.
        share: of all stages, from 0 to 1.
        median_s: of the trials that came to this stage; None for what belongs to the run alone.
        trials: how many trials came to this stage.
    """

    stage: str
    total_s: float
    share: float
    median_s: float | None
    trials: int


def stage_times(trials: Sequence[Trial], run_seconds: Mapping[str, float]) -> list[StageTime]:
    """Add the time up by stage.

    Trials hold the seconds of their own stages, also where the run was interrupted or resumed; the run holds
    those of the rest. What was taken from the store cost nothing here.

    Args:
        trials: of the run.
        run_seconds: stage to seconds, as the run noted them at its end.
    """
    spent: dict[str, list[float]] = {}
    for trial in trials:
        for stage, seconds in () if trial.cached else trial.seconds.items():
            spent.setdefault(stage, []).append(seconds)
    return stage_table(spent, run_seconds)


def stage_table(spent: Mapping[str, Sequence[float]], run_seconds: Mapping[str, float]) -> list[StageTime]:
    """Add the time up by stage.

    Args:
        spent: stage to the seconds of each trial that came to it.
        run_seconds: stage to seconds, as the run noted them at its end.
    """
    totals = {**run_seconds, **{stage: sum(seconds) for stage, seconds in spent.items()}}
    whole = sum(totals.values()) or 1.0
    return [
        StageTime(
            stage,
            totals[stage],
            totals[stage] / whole,
            statistics.median(spent[stage]) if stage in spent else None,
            len(spent.get(stage, ())),
        )
        for stage in [*filter(totals.__contains__, MEANING), *sorted(totals.keys() - MEANING.keys())]
    ]


@dataclass(frozen=True)
class FailureGroup:
    """Trials that failed alike.

    Args:
        stage: where.
        reason: why.
        count: how many.
        share: of all trials, from 0 to 1.
        detail: of the first.
        example: the first's candidate.
    """

    stage: str
    reason: str
    count: int
    share: float
    detail: str
    example: Candidate


def failure_groups(trials: Sequence[Trial]) -> list[FailureGroup]:
    """Group the failed trials by stage and reason, the most frequent first."""
    groups: dict[tuple[str, str], list[tuple[Candidate, Failed]]] = {}
    for trial in trials:
        if isinstance(trial.outcome, Failed):
            key = (trial.outcome.stage, trial.outcome.reason)
            groups.setdefault(key, []).append((trial.candidate, trial.outcome))
    found = [
        FailureGroup(stage, reason, len(cases), len(cases) / len(trials), cases[0][1].detail, cases[0][0])
        for (stage, reason), cases in groups.items()
    ]
    return sorted(found, key=lambda group: -group.count)


@dataclass
class TrialSources:
    """Numbers of a run's trials by the host that measured them, and by the client that submitted them.

    Args:
        hosts: name to number; a host that is not known has none.
        clients: the same; trials of a search have no client.
    """

    hosts: Counter[str] = field(default_factory=Counter[str])
    clients: Counter[str] = field(default_factory=Counter[str])

    def add(self, trials: Iterable[Trial]) -> TrialSources:
        """Count trials; return this."""
        for trial in trials:
            self.hosts.update(filter(None, (trial.host,)))
            self.clients.update(filter(None, (trial.client,)))
        return self

    def texts(self) -> Mapping[str, str]:
        """Return `hosts` and `clients` as "a (12 trials), b (3 trials)", where there are several."""
        several = {"hosts": self.hosts, "clients": self.clients}
        return {
            kind: ", ".join(
                f"{name} ({number:,} trial{'' if number == 1 else 's'})"
                for name, number in counts.most_common()
            )
            for kind, counts in several.items()
            if len(counts) > 1
        }


def flops_of(trial: Trial | None, objective: Objective) -> float | None:
    """Return the arithmetic of a call, in GFLOP, where a trial has both its GFLOPS and its time."""
    values = trial.outcome.values if trial is not None and isinstance(trial.outcome, Measured) else {}
    if objective.unit == "s" and "gflops" in values and objective.name in values:
        return values["gflops"] * values[objective.name]
    return None


def value_of(trial: Trial, objective: Objective) -> float | None:
    """Return a trial's value; None where it failed or is not finite."""
    cost = trial.cost(objective)
    return None if cost is None or not math.isfinite(cost) else objective.cost(cost)


def value_for(trials: Sequence[Trial], candidate: Candidate | None, objective: Objective) -> float | None:
    """Return the value that a candidate had in the search."""
    hits = (t for t in trials if candidate is not None and t.candidate.hash == candidate.hash)
    return next((v for t in hits if (v := value_of(t, objective)) is not None), None)


@dataclass(frozen=True)
class Timeline:
    """Times at which trials ended.

    Args:
        seconds: that the run had been under way, by trial.
        paused: seconds left out, because the run was not under way.
    """

    seconds: tuple[float, ...]
    paused: float


def by_time(trials: Sequence[Trial], started: float) -> Timeline:
    """Return the seconds that the run had been under way when each trial ended.

    A run may be taken up again days later: its pauses are left out. What was taken from the store
    cost nothing, so it has the time of the trial before it.

    Args:
        trials: by index.
        started: seconds since the epoch.
    """
    spent, paused = _spent(trials, started)
    seconds, latest = list[float](), 0.0
    for trial in trials:
        latest = spent.get(trial.index, latest)
        seconds.append(latest)
    return Timeline(tuple(seconds), paused)


def _spent(trials: Sequence[Trial], started: float) -> tuple[Mapping[int, float], float]:
    """Return the seconds under way by trial index, and those of the pauses."""
    spent, last, total, paused = dict[int, float](), started, 0.0, 0.0
    for trial in sorted((t for t in trials if not t.cached), key=lambda t: t.time):
        work, gap = sum(trial.seconds.values()), max(0.0, trial.time - last)
        pause = gap - work if gap > work + PAUSE_S else 0.0
        total, paused = total + gap - pause, paused + pause
        spent[trial.index], last = total, max(last, trial.time)
    return spent, paused


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
        """The task that was tuned; raises ProgramError where the level does not read the program any more."""
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
