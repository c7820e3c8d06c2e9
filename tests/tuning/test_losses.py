"""Evaluations that are lost with their workers: done again, never stored, and told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planish.budget import Budget
from planish.core import AllFailedError, Candidate, Outcome, Task, Trial
from planish.sandbox import LostError
from planish.settings import Settings
from planish.store import open_store
from planish.testing.lattice import Set
from planish.tuning.api import tune_program
from planish.tuning.result import Result
from tuning.final.struck import Mortal, Struck
from tuning.final.trading import Measuring, Text

SETTINGS = Settings(objectives=("time",), searcher="random", workers=1)


def searched(place: Path, spec: Struck | None, trials: int = 30) -> tuple[Result, list[Trial]]:
    """Search; gives the result and what is stored."""
    level = Mortal(spec=spec)
    with open_store(place) as store:
        result = tune_program(
            level, Text(), budget=Budget(trials=trials), settings=SETTINGS, store=store, compares=False
        )
        return result, store.run_trials(result.run_id, level.steps)


def told(trials: list[Trial]) -> list[tuple[int, Candidate, Outcome]]:
    return [(trial.index, trial.candidate, trial.outcome) for trial in trials]


def test_what_is_lost_once_is_measured_all_the_same(tmp_path: Path) -> None:
    calm, undisturbed = searched(tmp_path / "calm.db", None)
    spec = Struck(noise=0.0, folder=tmp_path, value=2, times=1)
    struck, trials = searched(tmp_path / "struck.db", spec)
    assert told(trials) == told(undisturbed)
    assert calm.notes == ()
    (note,) = struck.notes
    assert "evaluations were lost with their workers (killed by SIGKILL" in note
    assert note.endswith("and done again")


def test_what_is_lost_each_time_is_not_stored_and_asked_again(tmp_path: Path) -> None:
    _, undisturbed = searched(tmp_path / "calm.db", None)
    spec = Struck(noise=0.0, folder=tmp_path, value=2, times=3)
    struck, trials = searched(tmp_path / "struck.db", spec)
    spared = [each for each in told(undisturbed) if Set(0, 2) not in each[1].steps]
    assert told(trials) == spared
    assert struck.trials == len(spared)
    assert f"; {30 - len(spared)} in vain: the same command tries them once more" in struck.notes[0]
    again, whole = searched(tmp_path / "struck.db", spec)
    assert again.run_id == struck.run_id
    assert told(whole) == told(undisturbed)
    assert again.notes == ()


def test_if_all_are_lost_there_is_no_result(tmp_path: Path) -> None:
    spec = Struck(folder=tmp_path, times=99)
    with pytest.raises(AllFailedError) as caught:
        searched(tmp_path / "a.db", spec, trials=4)
    said = str(caught.value)
    assert "none of 4 candidates could be measured: lost with their workers (4)" in said
    assert "killed by SIGKILL" in said
    with open_store(tmp_path / "a.db") as store:
        (run,) = store.runs()
        assert (run.status, run.trials) == ("failed", 0)


def test_a_baseline_that_is_lost_is_no_fault_of_the_program(tmp_path: Path) -> None:
    settings = replace(SETTINGS, objectives=("time", "error"))
    level = Mortal(spec=Struck(folder=tmp_path, times=3))
    with open_store(tmp_path / "a.db") as store:
        with pytest.raises(LostError, match="the baseline's worker was lost: killed") as caught:
            tune_program(level, Text(), budget=Budget(trials=1), settings=settings, store=store)
        assert caught.value.hint == "The same command goes on."
        (run,) = store.runs()
        assert (run.status, run.trials) == ("failed", 0)
        found = tune_program(
            level, Text(), budget=Budget(trials=1), settings=settings, store=store, compares=False
        )
    assert (found.run_id, found.trials) == (run.id, 1)


def test_a_comparison_that_cannot_be_costs_the_run_nothing(tmp_path: Path) -> None:
    class Final(Mortal):
        def evaluator(self, task: Task, *, final: bool = False) -> Measuring:
            usual = super().evaluator(task, final=final)
            return Struck(folder=tmp_path, times=99) if final else usual

    with open_store(tmp_path / "a.db") as store:
        settings = replace(SETTINGS, finalists=2)
        result = tune_program(Final(), Text(), budget=Budget(trials=9), settings=settings, store=store)
        assert store.run(result.run_id).status == "finished"
    assert (result.finalists, result.trials) == ((), 9)
    (note,) = result.notes
    assert note.startswith("not compared with the baseline: 3 processes were lost while they measured it")
