"""Recorder of a run's trials: indices, storage, counts and notification of listeners.

`Progress` is what a listener observes, `Trials` is the window on the stored trials, and `TrialRecorder`
records each outcome in both.
"""

from __future__ import annotations

import logging
import platform
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Protocol

from planish.core import (
    Candidate,
    Evaluation,
    Failed,
    Level,
    Lost,
    Measured,
    Objective,
    Step,
    Task,
    Trial,
    TrialPrediction,
)
from planish.core.front import HypervolumeTracker
from planish.core.trial import checked_for

if TYPE_CHECKING:
    from planish.store import Store
    from planish.tuning.constraint import Constraint


_log = logging.getLogger("planish")


@dataclass
class Progress:
    """The state of a run.

    Args:
        task: what is tuned.
        run_id: the run's name in the store.
        trials: how many candidates have an outcome.
        cached: how many of them came from the store.
        failures: "stage: reason" to how many failed so.
        lost: how many were lost with their workers, and have no outcome.
        best: the best measured trial.
        hypervolume: how the front grows; None with one objective.
        summary: what the level knows of the program by now, in lines.
        compares: whether the best few are measured again once the search is over.
        stopped: whether the user ended the search.
        loading_s: how long it took to read the program and make its space; no budget counts it.
        searcher: the searcher's name.
        seed: of the search.
        rejected: how many of the proposed candidates the user's constraint rejected; they are not trials.
        stop_reason: why a callback ended the search; empty where none did.
    """

    task: Task
    run_id: str
    trials: int = 0
    cached: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    lost: int = 0
    best: Trial | None = None
    hypervolume: HypervolumeTracker | None = None
    summary: Sequence[str] = ()
    compares: bool = True
    stopped: bool = False
    loading_s: float = 0.0
    searcher: str = ""
    seed: int = 0
    rejected: int = 0
    stop_reason: str = ""

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self.task.objectives[0]

    def add(self, trial: Trial) -> None:
        """Count a trial."""
        self.trials += 1
        self.cached += trial.cached
        if self.hypervolume is not None:
            self.hypervolume.add(trial)
        cost = trial.cost(self.objective)
        if isinstance(trial.outcome, Failed):
            self.failures[f"{trial.outcome.stage}: {trial.outcome.reason}"] += 1
        elif cost is not None and (self.best is None or self._rank(trial) < self._rank(self.best)):
            self.best = trial

    def _rank(self, trial: Trial) -> tuple[float, int]:
        """Return the key by which trials are ranked: ties go to the one proposed first, as in the store."""
        return trial.cost(self.objective) or 0.0, trial.index

    @property
    def best_value(self) -> float | None:
        """The leading objective's best value; None before the first measured trial."""
        if self.best is None or not isinstance(self.best.outcome, Measured):
            return None
        return self.best.outcome.values[self.objective.name]


class Listener(Protocol):
    """Receives the progress of a run; its methods must return quickly."""

    def started(self, progress: Progress) -> None:
        """The search begins."""
        ...

    def trial(self, trial: Trial, progress: Progress) -> None:
        """A candidate has an outcome."""
        ...

    def ending(self, progress: Progress, what: str) -> None:
        """The search is over, and a step of the end begins: "measuring the best 3 again ..."."""
        ...


class Silent:
    """A listener that says nothing."""

    def started(self, progress: Progress) -> None:
        """Do nothing."""

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Do nothing."""

    def ending(self, progress: Progress, what: str) -> None:
        """Do nothing."""


AHEAD = 500
"""Trials that are read at once where a run is replayed."""
CACHED = 2 * AHEAD
"""Trials that are held in memory at most."""


class Trials:
    """The trials of a run by index; a hash and a number is all that is kept of most of them.

    A stored candidate keeps its index, a new one gets the least free. So a run that was killed fills the gaps
    that it left, as if it had never been, and no index is given twice even where the candidates that are
    proposed have changed.

    Args:
        store: where the run is held for writing.
        run_id: the run.
        steps: step name to class, as the level lists them.
    """

    def __init__(self, store: Store, run_id: str, steps: Mapping[str, type[Step]]) -> None:
        self._store, self._run_id, self._steps = store, run_id, steps
        self._stored: dict[str, int] = {}
        self._in_flight: dict[str, int] = {}
        self._cache: dict[int, Trial] = {}
        self._free: Iterator[int] = count()
        self._gaps: frozenset[int] = frozenset()
        self._end = self._read_to = 0

    def resume(self) -> Iterator[Trial]:
        """Yield what the store holds of the run, by index; each candidate once.

        Raises:
            StoreError: it is damaged.
        """
        taken: set[int] = set()
        for trial in self:
            taken.add(trial.index)
            if trial.candidate.hash not in self._stored:
                self._stored[trial.candidate.hash] = trial.index
                yield trial
        self._end = max(taken, default=-1) + 1
        self._gaps = frozenset(range(self._end)) - taken
        self._free = chain(sorted(self._gaps), count(self._end))

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def n_indexed(self) -> int:
        """Return how many candidates have an index; those that have no outcome yet too, or were lost."""
        return len(self._stored) + len(self._in_flight)

    def __iter__(self) -> Iterator[Trial]:
        """Read all from the store, by index."""
        return self._store.each_trial(self._run_id, self._steps)

    def has(self, candidate: Candidate) -> bool:
        """Return whether a candidate has an outcome."""
        return candidate.hash in self._stored

    @property
    def n_resumed(self) -> int:
        """Return how many there were when the run was resumed."""
        return self._end - len(self._gaps)

    def was_resumed(self, candidate: Candidate) -> bool:
        """Return whether a candidate had an outcome when the run was resumed."""
        index = self._stored.get(candidate.hash, self._end)
        return index < self._end and index not in self._gaps

    def index(self, candidate: Candidate) -> int:
        """Return a candidate's index; the same one whenever it is asked for."""
        name = candidate.hash
        if name in self._stored:
            return self._stored[name]
        if name not in self._in_flight:
            self._in_flight[name] = next(self._free)
        return self._in_flight[name]

    def add(self, trial: Trial) -> None:
        """Note a trial that is stored now."""
        name = trial.candidate.hash
        self._in_flight.pop(name, None)
        self._stored[name] = trial.index
        self._hold([trial])

    def of(self, candidates: Iterable[Candidate]) -> dict[str, Trial]:
        """Return the trials of those candidates that have an outcome, by hash."""
        indices = {c.hash: self._stored[c.hash] for c in candidates if self.has(c)}
        found = {index: self._cache[index] for index in indices.values() if index in self._cache}
        if far := {index for index in indices.values() if index not in found}:
            if min(far) >= self._read_to:  # a replay goes on so
                far.update(range(min(far), min(far) + AHEAD))
                self._read_to = max(far) + 1
            read = {trial.index: trial for trial in self._read(far)}
            found |= read
            self._hold(read.values())
        return {name: found[index] for name, index in indices.items()}

    def candidate_at(self, index: int) -> Candidate | None:
        """Return the candidate that had this index when the run was resumed; None where none had it."""
        if index >= self._end or index in self._gaps:
            return None
        if index not in self._cache:
            self._hold(self._read(range(index, index + AHEAD)))
        return self._cache[index].candidate

    def _read(self, indices: Iterable[int]) -> Iterable[Trial]:
        return self._store.trials_at(self._run_id, indices, self._steps)

    def _hold(self, trials: Iterable[Trial]) -> None:
        """Keep trials at hand, and let go of those that were taken up first."""
        self._cache.update((trial.index, trial) for trial in trials)
        for index in list(islice(self._cache, max(0, len(self._cache) - CACHED))):
            del self._cache[index]


class Recorder(ABC):
    """Outcomes of one search; a subclass keeps them. By default nothing is known from an earlier session."""

    @property
    def n_resumed(self) -> int:
        """Return how many outcomes there were when the search was resumed."""
        return 0

    def introduce(self) -> None:  # noqa: B027  (nothing by default)
        """Note what is known of the program by now."""

    def predict(self, candidate: Candidate, prediction: TrialPrediction) -> None:
        """Note what was predicted for a candidate, to be stored with its trial; not stored by default."""
        del candidate, prediction

    def attribute(self, candidate: Candidate, client: str) -> None:
        """Note which client submitted a candidate, to be stored with its trial; not stored by default."""
        del candidate, client

    def assign_index(self, candidate: Candidate) -> None:
        """Assign an index to a candidate; it has none by default."""
        del candidate

    @abstractmethod
    def trial(self, candidate: Candidate) -> Trial | None:
        """Return the outcome of a candidate; None where there is none."""

    @abstractmethod
    def record(self, evaluation: Evaluation) -> Trial:
        """Keep an evaluation; return its trial."""

    def record_all(self, evaluations: Sequence[Evaluation]) -> Sequence[Trial]:
        """Keep evaluations; return their trials, in the same order."""
        return [self.record(each) for each in evaluations]

    def has(self, candidate: Candidate) -> bool:
        """Return whether a candidate has an outcome."""
        return self.trial(candidate) is not None

    def was_resumed(self, candidate: Candidate) -> bool:
        """Return whether it had one when the search was resumed."""
        del candidate
        return False

    def rejects(self, candidate: Candidate) -> bool:
        """Return whether a constraint keeps a candidate from being measured; there is none by default."""
        del candidate
        return False

    def known(self, candidates: Sequence[Candidate]) -> Iterator[Trial]:
        """Return the trials of those that have an outcome, each once."""
        found = {candidate.hash: self.trial(candidate) for candidate in candidates}
        return iter([trial for trial in found.values() if trial is not None])

    def timed(self, stage: str) -> AbstractContextManager[None]:
        """Count the block's time for a stage; not counted by default."""
        del stage
        return nullcontext()


@dataclass
class TrialRecorder(Recorder):
    """The outcomes of a run.

    Args:
        level: of the program.
        task: what is searched for.
        seed: the run's.
        store: where trials are kept.
        listener: is notified of the progress.
        progress: how far the search is.
        trials: so far; what the store holds of this run is its beginning, which costs no budget.
        lost: those of which nothing is known, since they were lost with their workers, by hash.
        seconds: spent, by stage.
        where: the user's constraint on candidates; None where there is none.

    Attributes:
        predictions: what the searcher predicted for candidates without a trial, by hash.
        clients: the clients that submitted candidates without a trial, by hash.
    """

    level: Level
    task: Task
    seed: int
    store: Store
    listener: Listener
    progress: Progress
    trials: Trials
    lost: dict[str, Trial] = field(default_factory=dict[str, Trial])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    where: Constraint | None = None
    _rejected: dict[str, bool] = field(default_factory=dict[str, bool], init=False)
    predictions: dict[str, TrialPrediction] = field(default_factory=dict[str, TrialPrediction], init=False)
    clients: dict[str, str] = field(default_factory=dict[str, str], init=False)

    @property
    def run_id(self) -> str:
        """The run's name in the store."""
        return self.progress.run_id

    @property
    def n_resumed(self) -> int:
        """Return how many outcomes there were when the run was resumed."""
        return self.trials.n_resumed

    def resume(self) -> None:
        """Begin with the stored trials of this run, which the searcher proposes again."""
        for trial in self.trials.resume():
            self._tell(replace(trial, cached=True))

    def introduce(self) -> None:
        """Note what the level knows of the program by now; a proposal may have found out more."""
        self.progress.summary = self.level.summary(self.task)

    def predict(self, candidate: Candidate, prediction: TrialPrediction) -> None:
        """Note what was predicted for a candidate that has no trial yet."""
        if not self.has(candidate):
            self.predictions[candidate.hash] = prediction

    def attribute(self, candidate: Candidate, client: str) -> None:
        """Note which client submitted a candidate that has no trial yet."""
        if not self.has(candidate):
            self.clients[candidate.hash] = client

    def assign_index(self, candidate: Candidate) -> None:
        """Assign an index to a candidate: it is that of its first proposal."""
        self.trials.index(candidate)

    def has(self, candidate: Candidate) -> bool:
        """Return whether a candidate has an outcome in this run."""
        return self.trials.has(candidate)

    def was_resumed(self, candidate: Candidate) -> bool:
        """Return whether it had one when the run was resumed."""
        return self.trials.was_resumed(candidate)

    def rejects(self, candidate: Candidate) -> bool:
        """Return whether the user's constraint rejects a candidate; it is asked once for each."""
        if self.where is None:
            return False
        name = candidate.hash
        if name not in self._rejected:
            self._rejected[name] = not self.where(candidate)
            self.progress.rejected += self._rejected[name]
        return self._rejected[name]

    def trial(self, candidate: Candidate) -> Trial | None:
        """Return the outcome of a candidate, lost ones too; None where there is none."""
        return self.trials.of([candidate]).get(candidate.hash) or self.lost.get(candidate.hash)

    def known(self, candidates: Sequence[Candidate]) -> Iterator[Trial]:
        """Return the trials of those that have an outcome in this run, each once."""
        return iter(self.trials.of(candidates).values())

    def recall(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """Take from the store what other runs have measured; gives the trials."""
        if not candidates:
            return []
        with self.timed("store"):
            elsewhere = self.store.known(self.task.key, candidates)
        found: list[Trial] = []
        for candidate in candidates:
            if (old := elsewhere.get(candidate.hash)) is not None:
                index = self.trials.index(candidate)
                guess = self.predictions.pop(candidate.hash, None)
                client = self.clients.get(candidate.hash, "")
                found.append(
                    replace(
                        old,
                        candidate=candidate,
                        index=index,
                        seed=self.seed,
                        cached=True,
                        prediction=guess,
                        client=client,
                    )
                )
        self._add(found)
        return found

    def record(self, evaluation: Evaluation) -> Trial:
        """Store the result of an evaluation; return its trial."""
        return self.record_all([evaluation])[0]

    def record_all(self, evaluations: Sequence[Evaluation]) -> Sequence[Trial]:
        """Store the results of evaluations in one transaction; return their trials."""
        trials = [self._trial_of(each) for each in evaluations]
        self._add([trial for trial in trials if not isinstance(trial.outcome, Lost)])
        for trial in trials:
            if isinstance(trial.outcome, Lost):
                self.lost[trial.candidate.hash] = trial
                self.progress.lost = len(self.lost)
        return trials

    def _trial_of(self, evaluation: Evaluation) -> Trial:
        candidate, seconds = evaluation.candidate, evaluation.seconds
        for stage, spent in seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
        index, host = self.trials.index(candidate), evaluation.host or platform.node()
        outcome = checked_for(evaluation.outcome, self.task.objectives)
        guess = self.predictions.get(candidate.hash)
        client = self.clients.get(candidate.hash, "")
        return Trial(
            candidate, outcome, index, self.seed, seconds, host, time.time(), prediction=guess, client=client
        )

    def _add(self, trials: Sequence[Trial]) -> None:
        """Store trials, and note them."""
        with self.timed("store"):
            self.store.add_trials(self.progress.run_id, trials)
        for trial in trials:
            self.predictions.pop(trial.candidate.hash, None)
            self.clients.pop(trial.candidate.hash, None)
            if self.lost.pop(trial.candidate.hash, None):
                self.progress.lost = len(self.lost)
            self.trials.add(trial)
            _log.debug("run %s, trial %d: %s", self.run_id, trial.index, trial.outcome)
            self._tell(trial)

    def _tell(self, trial: Trial) -> None:
        self.progress.add(trial)
        self.listener.trial(trial, self.progress)

    def part(self, stage: str, name: str, seconds: float) -> None:
        """Count a part of a stage's time as a stage of its own."""
        self.seconds[stage] = max(0.0, self.seconds.get(stage, 0.0) - seconds)
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    @contextmanager
    def timed(self, stage: str) -> Generator[None]:
        """Count the block's time for a stage."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.monotonic() - start
