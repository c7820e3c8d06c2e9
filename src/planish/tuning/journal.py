"""What became of candidates: stored, counted, and told to whoever watches."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from planish.core import Candidate, Evaluation, KnowsPrograms, Level, Lost, Task, Trial
from planish.core.checked_outcome import checked_for
from planish.sandbox.protocol import HOST
from planish.store import Store
from planish.tuning.progress import Listener, Progress
from planish.tuning.trials import Trials


@dataclass
class Journal:
    """The outcomes of a run.

    Args:
        level: of the program.
        task: what is searched for.
        seed: the run's.
        store: where trials are kept.
        listener: is told how it goes.
        progress: how far the search is.
        trials: so far; what the store holds of this run is its beginning, which costs no budget.
        lost: those of which nothing is known, since they were lost with their workers, by hash.
        seconds: spent, by stage.
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

    @property
    def run_id(self) -> str:
        """The run's name in the store."""
        return self.progress.run_id

    def take_up(self) -> None:
        """Begin with what the store holds of this run; the searcher will propose it again, and be told."""
        for trial in self.trials.take_up():
            self._tell(replace(trial, cached=True))

    def introduce(self) -> None:
        """Note what the level knows of the program by now; a proposal may have found out more."""
        if isinstance(self.level, KnowsPrograms):
            self.progress.introduction = self.level.introduction(self.task)

    def place(self, candidate: Candidate) -> None:
        """Give a candidate its place in the run: it is that of its first proposal."""
        self.trials.index(candidate)

    def has(self, candidate: Candidate) -> bool:
        """Whether a candidate has an outcome in this run."""
        return self.trials.has(candidate)

    def is_old(self, candidate: Candidate) -> bool:
        """Whether it had one when the run was taken up."""
        return self.trials.is_old(candidate)

    def trial(self, candidate: Candidate) -> Trial | None:
        """Give what became of a candidate, lost ones too; None where nothing did."""
        return self.trials.of([candidate]).get(candidate.hash) or self.lost.get(candidate.hash)

    def known(self, candidates: Sequence[Candidate]) -> Iterator[Trial]:
        """Give the trials of those that have an outcome in this run, each once."""
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
                place = self.trials.index(candidate)
                found.append(replace(old, candidate=candidate, index=place, seed=self.seed, cached=True))
                self._add(found[-1])
        return found

    def answered(self, candidate: Candidate, answer: Evaluation) -> Trial:
        """Keep an answer; gives the trial."""
        for stage, spent in answer.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent
        place, host = self.trials.index(candidate), answer.host or HOST
        outcome = checked_for(answer.outcome, self.task.objectives)
        trial = Trial(candidate, outcome, place, self.seed, answer.seconds, host, time.time())
        if isinstance(outcome, Lost):
            self.lost[candidate.hash] = trial
            self.progress.lost = len(self.lost)
        else:
            self._add(trial)
        return trial

    def _add(self, trial: Trial) -> None:
        if self.lost.pop(trial.candidate.hash, None):
            self.progress.lost = len(self.lost)
        with self.timed("store"):
            self.store.add_trials(self.progress.run_id, [trial])
        self.trials.add(trial)
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
