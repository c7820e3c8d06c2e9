"""Callbacks, early stopping, constraints on candidates, and loggers, in real runs."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import pytest

import planish
from planish import Budget, Result, Settings
from planish.callbacks import ActiveRun, Callback, EarlyStopping, MLflowLogger, TrialCallback, WandbLogger
from planish.core import AllFailedError, ArgumentError, Candidate, Failed, Measured, TargetError, Trial
from planish.levels.loops.steps import Parallel, Unroll
from planish.testing.stores import make_task
from planish.tuning.constraint import Constraint, constraint_key
from planish.tuning.recorder import Progress

MATMUL = "C[m,n] += A[m,k] * B[k,n]"
SIZE = {"m": 8, "n": 8, "k": 8}


def tune(
    store: Path, trials: int, *callbacks: TrialCallback, where: Constraint | None = None, **settings: Any
) -> Result:
    chosen = Settings(searcher="random", workers=1, finalists=1, where=where, **settings)
    budget = Budget(trials=trials)
    return planish.tune(MATMUL, size=SIZE, budget=budget, settings=chosen, callbacks=callbacks, store=store)


class Log(Callback):
    """Writes what it observes."""

    def __init__(self) -> None:
        self.seen = list[Any]()

    def begin(self, run: ActiveRun) -> None:
        self.seen.append(("begin", run.trials))

    def __call__(self, run: ActiveRun, trial: Trial) -> None:
        self.seen.append((trial.index, trial.cached, run.trials))

    def end(self, run: ActiveRun, result: Result | None) -> None:
        self.seen.append(("end", run.id, result and result.run.id))


def test_callbacks_are_called_after_each_trial_is_stored_and_again_for_the_trials_of_a_resumed_run(
    tmp_path: Path,
) -> None:
    store = tmp_path / "planish.db"
    stored = list[int]()

    def count(run: ActiveRun, trial: Trial) -> None:
        with planish.open_store(store, read_only=True) as opened:
            stored.append(opened.run(run.id).trials)
        assert (run.level, run.searcher, run.seed, run.objective.name) == ("loops", "random", 0, "time_s")
        assert run.program.startswith("C[m")
        assert run.failed <= run.trials
        assert run.best is None or run.best.index <= trial.index

    log = Log()
    first = tune(store, 2, log, count)
    assert stored == [1, 2]
    assert log.seen == [
        ("begin", 0), (0, False, 1), (1, False, 2), ("end", first.run.id, first.run.id),
    ]  # fmt: skip
    log = Log()
    again = tune(store, 3, log)
    assert [each for each in log.seen if isinstance(each[0], int)] == [
        (0, True, 1),
        (1, True, 2),
        (2, False, 3),
    ]
    assert again.run.id == first.run.id


def test_an_exception_of_a_callback_is_raised_and_what_was_measured_is_kept(tmp_path: Path) -> None:
    store, log = tmp_path / "planish.db", Log()

    def fail(run: ActiveRun, trial: Trial) -> None:
        del trial
        if run.trials == 2:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        tune(store, 5, log, fail)
    assert log.seen[-1][2] is None, "there is no result"
    assert [(run.trials, run.status) for run in planish.runs(store)] == [(2, "stopped")]
    assert tune(store, 3).run.trials == 3


@pytest.mark.parametrize("by_signal", [False, True], ids=["an exception", "Ctrl-C"])
def test_an_interrupt_keeps_the_best(by_signal: bool, tmp_path: Path) -> None:
    def interrupt(run: ActiveRun, trial: Trial) -> None:
        del trial
        if run.best is not None and by_signal:
            os.kill(os.getpid(), signal.SIGINT)
        elif run.best is not None:
            raise KeyboardInterrupt

    result = tune(tmp_path / "planish.db", 50, interrupt)
    assert result.stopped
    assert result.run.trials < 50
    assert result.best.index < 50


def test_early_stopping_ends_the_search_and_the_best_are_compared(tmp_path: Path) -> None:
    store = tmp_path / "planish.db"
    stopping = EarlyStopping(patience=2, min_improvement=0.9)
    result = tune(store, 50, stopping)
    assert result.run.status == "finished"
    assert 3 <= result.run.trials < 50
    assert result.finalists
    said = "the search was stopped: 2 trials in a row did not improve time_s by 90 %"
    assert said in result.notes
    again = tune(store, 50, stopping)
    assert (again.run.id, again.run.trials) == (result.run.id, result.run.trials)


@pytest.fixture
def progress() -> Progress:
    return Progress(make_task(), "00000000")


@pytest.mark.parametrize(
    ("share", "values", "stops_after"),
    [
        (0.0, [3.0, 2.0, 1.0, 1.0, 1.0, 1.0], 6),
        (0.0, [None, None, None, None, None, None], None),
        (0.1, [1.0, 0.95, 0.94, 0.93], 4),
        (0.1, [1.0, 0.95, 0.94, 0.8, 0.79, 0.78, 0.77], 7),
        (0.0, [1.0, None, None, None], 4),
    ],
)
def test_early_stopping_waits_for_so_many_trials_without_an_improvement(
    progress: Progress, share: float, values: list[float | None], stops_after: int | None
) -> None:
    stopping, run = EarlyStopping(3, share), ActiveRun(progress)
    for _ in range(2):  # it can be used for one run after another
        progress.stop_reason = ""
        stopping.begin(run)
        stopped = None
        for count, value in enumerate(values, 1):
            outcome = Failed("build", "crash") if value is None else Measured({run.objective.name: value})
            stopping(run, Trial(Candidate(), outcome))
            if progress.stop_reason and stopped is None:
                stopped = count
        assert stopped == stops_after


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("3",), "patience= takes a whole number, not '3' (str). Write patience=3."),
        ((0,), "patience= takes a whole number of at least 1, not 0"),
        ((3, 2.0), "min_improvement= takes a share from 0 to 1, not 2.0"),
    ],
)
def test_wrong_arguments_of_early_stopping_are_named(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(said)):
        EarlyStopping(*arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"callbacks": print}, "callbacks= takes a list of functions, not"),
        ({"callbacks": [3]}, "callbacks= takes functions of (run, trial), not 3"),
        ({"callbacks": 3}, "callbacks= takes a list of functions, not 3"),
        ({"callbacks": [EarlyStopping]}, "Write EarlyStopping(...)."),
        ({"where": 3}, "where= takes a function of a candidate, not 3"),
        ({"where": "x < 3"}, "where= takes a function of a candidate, not 'x < 3' (str)"),
        ({"show_progress": "yes"}, "show_progress= takes True, False or None, not 'yes' (str)"),
    ],
)
def test_wrong_callbacks_and_constraints_are_named(
    arguments: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError, match=re.escape(said)):
        planish.tune(MATMUL, size=SIZE, store=tmp_path / "planish.db", **arguments)


def is_serial(candidate: Candidate) -> bool:
    return not any(isinstance(step, Parallel) for step in candidate.steps)


def is_short(candidate: Candidate, most: int) -> bool:
    return sum(isinstance(step, Unroll) for step in candidate.steps) <= most


def test_rejected_candidates_are_never_measured_and_the_constraint_decides_what_is_resumed(
    tmp_path: Path,
) -> None:
    store, asked = tmp_path / "planish.db", list[Candidate]()

    def accepts(candidate: Candidate) -> bool:
        return int(candidate.hash[:2], 16) % 2 == 0

    def remembers(candidate: Candidate) -> bool:
        asked.append(candidate)
        return accepts(candidate)

    result = tune(store, 4, where=accepts)
    assert result.run.trials == 4
    assert all(map(accepts, (trial.candidate for trial in result.stored_trials)))
    found = [each.candidate for each in result.finalists]
    assert all(accepts(each) or each == result.baseline_candidate for each in found)
    resumed = tune(store, 6, where=accepts)
    assert (resumed.run.id, resumed.run.trials) == (result.run.id, 6)
    assert [t.candidate for t in resumed.stored_trials][:4] == [t.candidate for t in result.stored_trials]
    other = tune(store, 3, where=remembers)
    assert other.run.id != result.run.id, "its answer depends on a list that grows"
    assert len({each.hash for each in asked}) > 3, "some were rejected"
    assert tune(store, 2).run.id not in (result.run.id, other.run.id)


def test_a_constraint_that_rejects_everything_ends_with_a_clear_message(tmp_path: Path) -> None:
    with pytest.raises(AllFailedError, match=r"where= rejected all [\d,]+ candidates .*Let it return True"):
        tune(tmp_path / "planish.db", 5, where=lambda _: None)


def test_an_exception_of_a_constraint_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        tune(tmp_path / "planish.db", 5, where=lambda _: 1 // 0 == 0)


LIMIT = 3


def by_global(candidate: Candidate) -> bool:
    return len(candidate.steps) <= LIMIT


def by_helper(candidate: Candidate) -> bool:
    return is_short(candidate, 2) and prod([1, 2]) == 2


def within(most: int) -> Constraint:
    return lambda candidate: len(candidate.steps) <= most


class AtMost:
    def __init__(self, most: int) -> None:
        self.most = most

    def __call__(self, candidate: Candidate) -> bool:
        return len(candidate.steps) <= self.most

    def accepts(self, candidate: Candidate) -> bool:
        return self(candidate)


def test_equal_constraints_have_equal_keys_and_different_ones_have_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Callable[[int], Constraint]] = [
        within, AtMost, lambda n: AtMost(n).accepts, lambda n: partial(is_short, most=n),
    ]  # fmt: skip
    for make in made:
        assert constraint_key(make(3)) == constraint_key(make(3))
        assert constraint_key(make(3)) != constraint_key(make(4))
    keys = {constraint_key(each) for each in (is_serial, by_global, by_helper, within(3), AtMost(3))}
    assert len(keys) == 5
    before = constraint_key(by_global), constraint_key(by_helper)
    assert before == (constraint_key(by_global), constraint_key(by_helper))
    monkeypatch.setitem(globals(), "LIMIT", 4)
    monkeypatch.setitem(globals(), "is_short", is_serial)
    assert constraint_key(by_global) != before[0]
    assert constraint_key(by_helper) != before[1]


def test_what_cannot_be_compared_has_a_key_of_its_own() -> None:
    odd = object()
    assert constraint_key(lambda _: odd is None) != constraint_key(lambda _: odd is None)


def test_a_logger_whose_package_is_missing_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, logger in (("mlflow", MLflowLogger), ("wandb", WandbLogger)):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(TargetError, match=r"not installed\. Install it: pip install .*\[loggers\]'"):
            logger()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed: planish[loggers]")
def test_mlflow_receives_parameters_trials_and_the_comparison(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    result = tune(tmp_path / "planish.db", 3, MLflowLogger("tuning", uri))
    client = import_module("mlflow").MlflowClient(uri)
    experiment = client.get_experiment_by_name("tuning")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert (run.data.params["run_id"], run.data.params["searcher"]) == (result.run.id, "random")
    history = client.get_metric_history(run.info.run_id, "best_time_s")
    best = [metric.value for metric in sorted(history, key=lambda metric: metric.step)]
    assert best == sorted(best, reverse=True)
    assert best[-1] == result.best.outcome.values["time_s"]  # pyright: ignore[reportAttributeAccessIssue]
    assert run.data.metrics["gain"] == result.gain
    assert run.data.tags["verdict"].startswith("Verdict: ")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(find_spec("wandb") is None, reason="wandb is not installed: planish[loggers]")
def test_wandb_receives_them_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    result = tune(tmp_path / "planish.db", 3, WandbLogger("tuning", dir=str(tmp_path)))
    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    written = file.read_bytes()
    words = (result.run.id, "random", "best_time_s", "failed_trials", "gain_low", "Verdict: ")
    assert [word for word in words if word.encode() not in written] == []
