"""A value that cannot be is a failure of its candidate, in the search and in the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.lattices import Grid, LatticeLevel, Measuring
from planish.core import Candidate, EvaluatorSpec, Failed, Measured, Outcome, StageClock, Task
from planish.measure.executors import InlineExecutor
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget

ODD: Mapping[int, tuple[Mapping[str, float], str]] = {
    5: ({"time_s": -5.0}, "negative"),
    4: ({"time_s": 0.0}, "no time"),
    3: ({"gflops": 1e9}, "not measured"),
}
"""What is measured of a candidate by its first coordinate, and why it cannot be. These would be the best."""


@dataclass(frozen=True)
class OddMeasuring(Measuring):
    """Measures what cannot be."""

    odd: bool = True

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        outcome = super().evaluate(candidate, clock)
        values, _ = ODD.get(self.grid.space.position(candidate)[0], ({}, ""))
        return Measured(values) if self.odd and values and isinstance(outcome, Measured) else outcome


def _inline(spec: EvaluatorSpec, *, workers: int = 1) -> InlineExecutor:
    del workers
    return InlineExecutor(spec())


class OddLevel(LatticeLevel):
    """A level with such an evaluator for the search, or for the comparison."""

    def __init__(self, *, at_the_end: bool) -> None:
        self._at_the_end = at_the_end

    def evaluator(self, task: Task, *, final: bool = False) -> Measuring:
        plain = super().evaluator(task, final=final)
        return OddMeasuring(plain.grid, final, odd=final == self._at_the_end)


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_value_that_cannot_be_wins_nothing(tmp_path: Path, at_the_end: bool) -> None:
    level = OddLevel(at_the_end=at_the_end)
    with open_store(tmp_path / "planish.db") as store:
        budget = Budget(trials=24)
        result = tune_program(level, Grid((6, 4)), budget=budget, store=store, start=_inline)
        trials = store.run_trials(result.run.id, level.steps)
    assert len(trials) == 24
    found = {Grid((6, 4)).space.position(trial.candidate): trial.outcome for trial in trials}
    for (first, _), outcome in found.items():
        if not at_the_end and first in ODD and isinstance(outcome, Failed) and outcome.stage == "run":
            assert outcome.reason == ODD[first][1]
        assert at_the_end or first not in ODD or isinstance(outcome, Failed)
    assert isinstance(result.best.outcome, Measured)
    assert result.best.outcome.values["time_s"] > 0
    assert Grid((6, 4)).space.position(result.candidate)[0] not in ODD
