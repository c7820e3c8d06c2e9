"""Tuning of kernels: whose search is next, and what a store counts as."""

from __future__ import annotations

from pathlib import Path

import pytest

import planish
from network_models import ModelWriter
from planish.core import Task
from planish.levels.graph.source import read_model
from planish.levels.loops.backends import this_machine
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.measure.executors import LocalExecutor
from planish.network import tuning
from planish.network.compiler import compile_model
from planish.network.placing import place_tensors
from planish.network.reader import read_network
from planish.network.tuning import MIN_SEARCH_S, DefaultTimes, Tuned, choose, next_search
from planish.store import open_store
from planish.tuning.api import task_of, tune_program
from planish.tuning.settings import Budget, Settings

SETTINGS = Settings()


@pytest.fixture
def task() -> Task[Program]:
    text, sizes = "C[m,n] += A[m,k]*B[k,n]", {"m": 16, "n": 16, "k": 16}
    return task_of(LoopsLevel(), parse(text, sizes, {}, "float32"), SETTINGS)


def test_time_goes_where_most_can_be_gained(task: Task[Program]) -> None:
    tuned = {
        "slow": Tuned(task, 1, 1.0, 4.0),
        "often": Tuned(task, 6, 1.0, 2.0),
        "at its bound": Tuned(task, 10, 1.0, 1.0),
    }
    given = dict.fromkeys(tuned, 0.0)
    while found := next_search(tuned, 90.0, 90.0 - sum(given.values())):
        name, seconds = found
        given[name] += seconds
        tuned[name].spent += seconds
    assert given["often"] == pytest.approx(60, abs=MIN_SEARCH_S)
    assert given["slow"] == pytest.approx(30, abs=MIN_SEARCH_S)
    assert given["at its bound"] <= MIN_SEARCH_S


def test_kernels_that_seem_to_be_at_their_bounds_are_tuned_all_the_same(task: Task[Program]) -> None:
    found = next_search({"a": Tuned(task, 1, 2.0, 1.0), "b": Tuned(task, 3, 2.0, 1.0)}, 40.0, 40.0)
    assert found is not None
    assert found[0] == "b"


def test_time_of_earlier_searches_counts(task: Task[Program]) -> None:
    had = Tuned(task, 1, 1.0, 2.0, spent=30.0)
    assert next_search({"had": had}, 30.0, 30.0) is None
    found = next_search({"had": had, "new": Tuned(task, 1, 1.0, 2.0)}, 30.0, 30.0)
    assert found is not None
    assert found[0] == "new"
    assert next_search({"had": had}, 40.0, 40.0) == ("had", 10.0), "a command with more seconds goes on"
    assert next_search({"had": had}, 40.0, 0.0) is None


def test_trials_of_a_store_are_taken_over(task: Task[Program], tmp_path: Path) -> None:
    level, tuned = LoopsLevel(), Tuned(task, 1, 0.0, 1.0)
    with open_store(tmp_path / "a.db") as store:
        tuned.read(store, level)
        assert (tuned.spent, list(tuned.best)) == (0.0, [])
        found = tune_program(
            level, task.program, budget=Budget(trials=6), settings=SETTINGS, store=store, compares=False
        )
        tuned.read(store, level)
    best = found.best_trial
    assert best is not None
    assert tuned.best[0] == best.candidate
    assert tuned.seconds == best.cost(task.objectives[0])
    assert tuned.spent > 0


@pytest.mark.slow
def test_the_same_command_measures_no_more_than_its_seconds(tmp_path: Path) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", w.add("MatMul", w.input("x", (40, 50)), w.weight(50, 60)))

    def measured(seconds: float) -> int:
        """Compile, and count the measurements that the store has then."""
        planish.compile(path, seconds=seconds, store=tmp_path / "a.db")
        return sum(run.trials for run in planish.runs(store=tmp_path / "a.db"))

    seconds = 4.0
    while (first := measured(seconds)) < 4:  # a machine may be so slow
        seconds *= 2
    assert measured(seconds) - first <= first // 2


@pytest.mark.slow
def test_nothing_is_measured_where_no_time_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", w.dense(w.input("x", (4, 16)), 16, 16))
    network, kernels = place_tensors(read_network(read_model(path, {}))[0])
    defaults = DefaultTimes(this_machine(1))
    monkeypatch.delattr(tuning, "time_kernels")
    found = choose(network, kernels, defaults, 0.0, tmp_path / "a.db", [].append, LocalExecutor)
    assert found == (defaults.schedules(kernels), 0)


@pytest.mark.slow
def test_layers_of_another_network_are_not_tuned_again(tmp_path: Path) -> None:
    def model(name: str, layers: int) -> Path:
        w = ModelWriter()
        x = w.input(name, (16, 64))
        for _ in range(layers):
            x = w.add("Relu", w.linear(x, 64, 64))
        return w.save(tmp_path / f"{name}.onnx", x)

    def tuned_programs(path: Path, seconds: float) -> list[str]:
        lines = list[str]()
        found = compile_model(
            path,
            output=None,
            seconds=seconds,
            store=tmp_path / "a.db",
            measures=False,
            on_progress=lines.append,
        )
        assert found.tuned == 1
        assert found.network.manifest["layers"][0]["steps"]
        return [line for line in lines if line.startswith("tuning for")]

    assert len(set(tuned_programs(model("one", 1), 9))) == 1
    runs = len(planish.runs(store=tmp_path / "a.db"))
    assert not tuned_programs(model("other", 3), MIN_SEARCH_S)
    assert len(planish.runs(store=tmp_path / "a.db")) == runs
