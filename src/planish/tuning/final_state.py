"""State at the end of a run, and paired measurement for the stages that change it.

Each stage of `planish.tuning.finish` reads a `SearchOutcome` and makes a new `FinalState` of the last one.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from planish.core import (
    NOTICED,
    Candidate,
    Executor,
    ExecutorFactory,
    Failed,
    FinalChecks,
    Level,
    Lost,
    Measured,
    Objective,
    Outcome,
    Space,
    Task,
    Trial,
    evaluate_in_order,
    rng,
)
from planish.core.trial import checked_for
from planish.measure import noise
from planish.store import Store
from planish.tuning.comparison import Compared, Comparison, Finalist
from planish.tuning.recorder import Progress
from planish.tuning.settings import Settings


class SearchTrials(Protocol):
    """The trials of a search, which are too many to be gone through twice."""

    def __iter__(self) -> Iterator[Trial]:
        """Return all that have an outcome."""
        ...

    def of(self, candidates: Iterable[Candidate]) -> dict[str, Trial]:
        """Return those of some candidates, by hash."""
        ...


@dataclass(frozen=True)
class SearchOutcome:
    """A run whose search is over.

    Args:
        level: the task's level.
        task: what was tuned.
        settings: how.
        store: where the run is held for writing.
        progress: the run's state.
        trials: to go through them is to read them from the store.
        seconds: where the time went, by stage.
        wall_s: how long the search took, in seconds.
        stopped: whether the user ended the search.
        notes: what the evaluators and the searcher have to report to the user.
        start: starts the executors that evaluate at the end.
        executor: live workers for a comparison that has no noise; None has fresh ones started.
        start_s: how long it took from starting the workers until the first of them had an answer.
    """

    level: Level
    task: Task
    settings: Settings
    store: Store
    progress: Progress
    trials: SearchTrials
    seconds: dict[str, float]
    wall_s: float
    stopped: bool
    start: ExecutorFactory
    notes: tuple[str, ...] = ()
    executor: Executor | None = None
    start_s: float = 0.0

    def space(self) -> Space:
        """Make the space that was searched."""
        return self.level.space(self.task, self.settings.space or self.level.spaces[0])

    def final_checks(self) -> FinalChecks:
        """Return what the level does for finalists besides."""
        return self.level.final_checks(self.task)


LEAST_NOISE = NOTICED
_AGAIN = 7


class OutOfTimeError(Exception):
    """The time for a step of the end is over."""


class PairedMeasurement:
    """Measures candidates in turns, in one process.

    Args:
        executor: evaluates a batch in its order, as at the end of a run.
        seed: of the orders.
        objectives: what each evaluation must give.

    Attributes:
        end: when no more is measured, by the monotonic clock; `OutOfTimeError` is raised then.
    """

    def __init__(self, executor: Executor, seed: int = 0, objectives: Sequence[Objective] = ()) -> None:
        self.end = math.inf
        self._objectives = objectives
        self._executor, self._seed, self._batches = executor, seed, 0

    def measure(self, candidates: Sequence[Candidate], rounds: int = 1) -> list[list[Outcome]]:
        """Measure candidates, in each round each once, in a shuffled order; one that fails is not repeated.

        Returns:
            The outcomes of each by round; of fewer rounds where the time ends, but of one at least.

        Raises:
            OutOfTimeError: there is no time left, not even for one round.
        """
        self._batches += 1
        found: list[list[Outcome]] = [[] for _ in candidates]
        for number in range(rounds):
            # Another order in each batch and round, so that no variant always follows the same one.
            order = rng(self._seed, self._batches, number).permutation(len(candidates)).tolist()
            last = {place: row[-1] for place, row in enumerate(found) if row}
            failed = {place: outcome for place, outcome in last.items() if isinstance(outcome, Failed)}
            left = [place for place in order if place not in failed]
            try:
                outcomes = self._outcomes([candidates[place] for place in left])
            except OutOfTimeError:
                if number == 0:
                    raise
                break
            for place, outcome in [*failed.items(), *zip(left, outcomes, strict=True)]:
                found[place].append(outcome)
        return found

    def _outcomes(self, batch: Sequence[Candidate]) -> list[Outcome]:
        found = evaluate_in_order(self._executor, batch, self.end) if time.monotonic() < self.end else []
        outcomes = [checked_for(each.outcome, self._objectives) for each in found if each]
        if len(outcomes) < len(batch):
            raise OutOfTimeError
        return outcomes

    def noise(
        self, baseline: Candidate, others: Sequence[Candidate], objectives: Sequence[Objective]
    ) -> Mapping[str, float]:
        """Measure the baseline again and again between the others; gives by how much it differs from itself.

        Returns:
            Objective name to a share; 0 for exact ones, else 1 % at least.

        Raises:
            OutOfTimeError: there is no time left.
        """
        floors = {objective.name: 0.0 if objective.exact else LEAST_NOISE for objective in objectives}
        if all(objective.exact for objective in objectives):
            return floors
        found: list[Outcome] = []
        for number in range(_AGAIN):
            between = others[number % len(others)] if others else baseline
            found.append(self.measure([baseline])[0][0])
            # With others between, as candidates are measured.
            self.measure([between])
        for objective in objectives:
            known = [one.values for one in found if isinstance(one, Measured)]
            values = [each[objective.name] for each in known if objective.name in each]
            if not objective.exact and len(values) > 2:
                floors[objective.name] = max(LEAST_NOISE, noise(values, self._seed))
        return floors


@contextmanager
def open_bench(search: SearchOutcome) -> Generator[PairedMeasurement]:
    """Start a bench in a fresh process; it ends with the block."""
    spec = search.level.evaluator(search.task, final=True)
    with search.start(spec) as executor:
        yield PairedMeasurement(executor, search.settings.seed, search.task.objectives)


def times_worse(objective: Objective, found: Sequence[Outcome], others: Sequence[Outcome]) -> float:
    """Return how many times worse something is than something else, round by round; the median.

    A round in which the worker of either was lost shows nothing.

    Args:
        objective: by which; its values are not negative.
        found: of the one, by round.
        others: of the other.

    Returns:
        1 for equals; infinite where the one fails, or alone is not 0 (or alone is, where more is better), and
        where nothing is known.
    """
    pairs = known_rounds(found, others)
    return statistics.median(_times(objective, *pair) for pair in pairs) if pairs else math.inf


def known_rounds(
    found: Sequence[Outcome], others: Sequence[Outcome]
) -> list[tuple[Measured | Failed, Measured | Failed]]:
    """Return the outcomes of two by round, without the rounds in which a worker was lost."""
    pairs = zip(found, others, strict=True)
    return [(one, other) for one, other in pairs if not isinstance(one, Lost) and not isinstance(other, Lost)]


def _times(objective: Objective, found: Measured | Failed, other: Measured | Failed) -> float:
    if isinstance(found, Failed) or isinstance(other, Failed):
        return math.inf
    one, base = found.values[objective.name], other.values[objective.name]
    # Where more is better, worse is less: the ratio turned round.
    if objective.direction == "up":
        one, base = base, one
    if one == base:
        return 1.0
    return one / base if base else math.inf


@dataclass(frozen=True)
class FinalState:
    """The finalists and whom they are compared with; each stage of the end makes a new state of the last.

    Args:
        finalists: those who are left; nothing is measured of them before the comparison.
        baseline: how it did; None before the comparison.
        reference: how another baseline did; None where there is none.
        noise: objective name to the share by which equals differ; empty where it was not measured.
        notes: what is to be said to the user.
        analyses: what was measured of the parts of a finalist, or of the baseline, for its description.
        best: the best trial of the search that is worse than the baseline in nothing, where there are several
            objectives; None where it was not looked for.
        unmeasured: the finalists who failed when they were measured again, or were left out.
    """

    finalists: tuple[Finalist, ...] = ()
    baseline: Compared | None = None
    reference: Compared | None = None
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()
    analyses: Mapping[Candidate, Mapping[str, Any]] = field(
        default_factory=dict[Candidate, Mapping[str, Any]]
    )
    best: Trial | None = None
    unmeasured: tuple[Finalist, ...] = ()

    def noted(self, *notes: str) -> FinalState:
        """Add what is to be said; empty lines are nothing."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))

    def noise_of(self, objective: Objective) -> float:
        """Return the share by which equals differ: 0 if it is exact, else as measured, or the least."""
        return 0.0 if objective.exact else self.noise.get(objective.name, LEAST_NOISE)

    def comparison(self, baseline: Candidate) -> Comparison | None:
        """Return the comparison as it is by now; None before there is any.

        The baseline comes first where none is better: nothing is then to be changed.
        """
        if self.baseline is None:
            return None
        found = self.finalists
        if not (found and found[0].improves):
            others = (each for each in found if each.candidate != baseline)
            found = (_unchanged(self.baseline, baseline), *others)
        named = tuple(
            replace(each, name=f"#{rank}", analysis=self.analyses.get(each.candidate, {}))
            for rank, each in enumerate((*found, *self.unmeasured), 1)
        )
        last = len(found)
        return Comparison(named[:last], self.baseline, self.reference, self.noise, self.notes, named[last:])


def _unchanged(baseline: Compared, candidate: Candidate) -> Finalist:
    """Make a finalist of the baseline."""
    return Finalist(
        candidate=candidate,
        measured=baseline.measured,
        scores=baseline.scores,
        opinion=baseline.opinion,
        searched=len(candidate.steps),
        trial={name: each.median for name, each in baseline.measured.items()},
    )
