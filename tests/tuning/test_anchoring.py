"""The baseline comes first where others are measured by it, and is told to whom it concerns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from planish.budget import Budget
from planish.core import Candidate, Measured, Outcome, Task, Trial
from planish.search import Nsga2
from planish.settings import Settings
from planish.store import open_store
from planish.tuning.api import tune_program
from scripted import Here
from tuning.final.trading import Measuring, Plain, Text

BOTH = ("time", "error")


@dataclass(frozen=True)
class Anchored(Measuring):
    """Notes what it is anchored to."""

    noted: list[float] = field(default_factory=list[float])

    def anchor(self, baseline: Outcome) -> None:
        assert isinstance(baseline, Measured)
        self.noted.append(baseline.values["time_s"])


@dataclass
class Relative(Plain):
    """A level that measures relative to the baseline, on a machine of some slowness."""

    slower: float = 1.0
    noted: list[float] = field(default_factory=list[float])

    def evaluator(self, task: Task, *, final: bool = False) -> Measuring:
        del task, final
        return Anchored(self.slower, 0.0, self.noted)


def tune(level: Relative, folder: Path, **chosen: object) -> list[Trial]:
    """Search a little; gives the trials."""
    settings = Settings(**{"objectives": BOTH, "searcher": "random", **chosen})  # type: ignore[arg-type]
    with open_store(folder / "store.db") as store:
        task_trials = tune_program(
            level,
            Text(),
            budget=Budget(trials=9),
            settings=settings,
            store=store,
            start=Here,
            compares=False,
        )
        return list(store.run_trials(task_trials.run_id, level.steps))


@pytest.mark.parametrize("objectives", [BOTH, ("time",)])
def test_a_later_run_is_anchored_to_the_baseline_of_the_first(
    objectives: tuple[str, ...], tmp_path: Path
) -> None:
    noted: list[float] = []
    first = tune(Relative(noted=noted), tmp_path, objectives=objectives)
    assert first[0].candidate == Candidate()
    later = tune(Relative(slower=2.0, noted=noted), tmp_path, objectives=objectives, seed=1)
    assert later[0].outcome == first[0].outcome
    assert noted == [1e-3, 1e-3]


def test_a_searcher_is_told_the_baseline_before_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[Candidate] = []

    def tell(_: Nsga2, trials: Sequence[Trial]) -> None:
        told.extend(trial.candidate for trial in trials)
        raise KeyboardInterrupt

    monkeypatch.setattr(Nsga2, "tell", tell)
    tune(Relative(), tmp_path, searcher="nsga2")
    assert told == [Candidate()]
