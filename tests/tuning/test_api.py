"""One run: budgets, resuming, failures, options, and what is left behind."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from planish import tune, validate
from planish.core import (
    AllFailedError,
    Candidate,
    CanEnumerate,
    Failed,
    Level,
    Measured,
    PlanishError,
    Target,
    Task,
    Trial,
    usable_cores,
)
from planish.core.front import HypervolumeTracker, growth_of
from planish.core.registry import level_named
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program as TensorProgram
from planish.levels.loops.level import LoopsLevel
from planish.measure.executors import ForkedExecutor, LocalExecutor
from planish.store import Store, open_store
from planish.tuning.api import tune_program
from planish.tuning.engine import count_workers
from planish.tuning.recorder import Progress, Silent
from planish.tuning.result import Result, read_result
from planish.tuning.settings import Budget, Settings

LEVEL = LoopsLevel()
run_module = import_module("planish.tuning.engine")
MATMUL = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 24, "n": 32, "k": 16})
QUICK = Settings(workers=1)


class Diary(Silent):
    """Keeps the trials, and whether they came from the store."""

    def __init__(self) -> None:
        self.trials: list[Trial] = []

    def trial(self, trial: Trial, progress: Progress) -> None:
        del progress
        self.trials.append(trial)


def run(
    store: Store | Path, trials: int, settings: Settings = QUICK, level: LoopsLevel = LEVEL
) -> tuple[Result, list[Trial]]:
    """Tune the matmul; gives the result and the trials in order."""
    diary = Diary()
    result = tune_program(
        level,
        MATMUL,
        budget=Budget(trials=trials),
        settings=settings,
        store=store,
        listener=diary,
        compares=False,
        start=ForkedExecutor,
    )
    return result, diary.trials


@pytest.mark.parametrize("seconds", [None, 1e4])
def test_what_is_under_way_is_cut_by_the_clock_once_something_is_measured(
    tmp_path: Path, seconds: float | None
) -> None:
    ends: list[float] = []

    class Watched(LocalExecutor):
        def submit(self, candidates: Sequence[Candidate], deadline: float = math.inf) -> None:
            ends.append(deadline)
            super().submit(candidates, deadline)

    tune_program(
        LEVEL,
        MATMUL,
        budget=Budget(trials=3, seconds=seconds),
        settings=QUICK,
        compares=False,
        store=tmp_path / "a.db",
        start=Watched,
    )
    assert math.isinf(ends[0])
    assert all(math.isinf(end) == (seconds is None) for end in ends[1:])
    assert seconds is None or len(ends) > 1


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("searcher", ["random", "genetic", "annealing"])
def test_fifty_trials_are_twenty_five_and_twenty_five_resumed(tmp_path: Path, searcher: str) -> None:
    """A search that outcomes steer goes the same way again, because the store gives it the same outcomes."""
    settings = Settings(workers=1, searcher=searcher, seed=3)
    first, _ = run(tmp_path / "a.db", 25, settings)
    second, resumed = run(tmp_path / "a.db", 50, settings)
    assert first.run.id == second.run.id
    assert [t.cached for t in resumed] == [True] * 25 + [False] * 25
    again, replayed = run(tmp_path / "a.db", 50, settings)
    assert [t.candidate for t in replayed] == [t.candidate for t in resumed]
    assert all(t.cached for t in replayed)
    assert again.best.candidate == second.best.candidate
    if searcher == "random":
        _, straight = run(tmp_path / "b.db", 50, settings)
        assert [t.candidate for t in straight] == [t.candidate for t in resumed]


def test_what_another_run_measured_is_not_measured_again(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.db") as store:
        run(store, 12)
        other, trials = run(store, 12, Settings(workers=1, searcher="random", space="template"))
        known = {t.candidate.hash for t in store.trials(other.task.key, LoopsLevel().steps)}
        assert len(store.runs(other.task.key)) == 2
        assert len(known) == len(store.trials(other.task.key, LoopsLevel().steps))
        assert {t.candidate.hash for t in trials} <= known


def test_remeasuring_begins_a_run_of_its_own(tmp_path: Path) -> None:
    first, _ = run(tmp_path / "a.db", 6)
    second, trials = run(tmp_path / "a.db", 6, Settings(workers=1, remeasure=True))
    assert first.run.id != second.run.id
    assert not any(t.cached for t in trials)


def test_a_search_of_a_small_space_ends_with_it_and_says_so(tmp_path: Path) -> None:
    level, program = LoopsLevel(), parse("C[i] = A[i]", {"i": 1})
    task = Task(program, level.target(program, 1), (level.objectives["time_s"],), level.version)
    space = level.space(task, "template")
    assert isinstance(space, CanEnumerate)
    with open_store(tmp_path / "planish.db") as store:
        for trials, said in ((97_600, True), (1, False)):
            settings = Settings(searcher="exhaustive", seed=trials)
            result = tune_program(
                level, program, budget=Budget(trials=trials), settings=settings, store=store, compares=False
            )
            assert result.run.trials == min(trials, len(list(space.candidates())))
            assert any("candidates of the space were tried" in note for note in result.notes) is said


def test_a_target_value_ends_the_search(tmp_path: Path) -> None:
    budget = Budget(trials=200, target=1.0)
    result = tune_program(
        LEVEL, MATMUL, budget=budget, settings=QUICK, compares=False, store=tmp_path / "a.db"
    )
    assert result.run.trials < 50


def test_the_winner_is_compared_with_numpy_and_stored(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.db") as store:
        result = tune_program(
            LEVEL, MATMUL, budget=Budget(trials=10), settings=Settings(finalists=2, workers=1), store=store
        )
        assert result.baseline is not None
        assert result.gain is not None
        assert result.gain > 0
        stored = store.result_rows(result.run.id, LoopsLevel().steps)
        assert [f.candidate for f in stored] == [r.candidate for r in result.finalists]
        assert store.run(result.run.id).status == "finished"
    files = result.export(tmp_path / "out")
    assert {f.suffix for f in files} == {".s", ".h", ".json"}
    assert "iter" in result.describe()["loop tree"]


def test_live_workers_serve_one_task_after_another(tmp_path: Path) -> None:
    other = parse("C[m] += A[m,k]", {"m": 24, "k": 40})
    level = LoopsLevel()
    task = tune_program(
        LEVEL, MATMUL, budget=Budget(trials=2), settings=QUICK, compares=False, store=tmp_path / "a.db"
    ).task
    with LocalExecutor(level.evaluator(task)) as executor, open_store(tmp_path / "b.db") as store:
        for program in (MATMUL, other, MATMUL):
            budget = Budget(trials=5)
            result = tune_program(
                LEVEL, program, budget=budget, settings=QUICK, compares=False, store=store, executor=executor
            )
            assert result.run.trials == 5


def test_both_spaces_and_any_fitting_searcher(tmp_path: Path) -> None:
    for searcher in ("greedy1", "greedy2", "beam-bfs", "beam-dfs", "random"):
        settings = Settings(workers=1, space="steps", searcher=searcher)
        result, _ = run(tmp_path / "a.db", 20, settings)
        assert result.run.trials
    with pytest.raises(PlanishError, match=r"Searchers that fit: beam-bfs, beam-dfs, greedy1"):
        run(tmp_path / "a.db", 5, Settings(space="steps", searcher="genetic"))


def test_if_everything_fails_there_is_no_result(tmp_path: Path) -> None:
    class Broken(LoopsLevel):
        def target(self, program: TensorProgram, cores: int) -> Target:
            return replace(super().target(program, cores), toolchain={"backend": "none"})

    with open_store(tmp_path / "a.db") as store:
        with pytest.raises(AllFailedError, match="none of 4 candidates could be measured"):
            run(store, 4, level=Broken())
        assert store.runs()[0].status == "failed"


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"seconds": -1.0}, {"seconds": float("inf")}])
def test_budgets_that_allow_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(PlanishError, match=f"^{next(iter(wrong))}= takes a .*number"):
        Budget(**wrong)  # pyright: ignore[reportArgumentType]


def test_outcomes_are_types() -> None:
    trial = Trial(Candidate(), Failed("run", "timeout"))
    assert trial.cost(LoopsLevel.objectives["time_s"]) is None
    assert Trial(Candidate(), Measured({"gflops": 2.0})).cost(LoopsLevel.objectives["gflops"]) == -2.0


def test_the_repr_of_an_outcome_has_the_values_without_the_samples() -> None:
    shown = repr(Measured({"time_s": 0.5}, {"time_s": (0.25,) * 1000}))
    assert shown.startswith("Measured(values={'time_s': 0.5}")
    assert "0.25" not in shown


def test_with_several_objectives_the_baseline_comes_first_and_the_front_grows_from_it(tmp_path: Path) -> None:
    class Watcher(Diary):
        hypervolume: HypervolumeTracker | None = None

        def trial(self, trial: Trial, progress: Progress) -> None:
            super().trial(trial, progress)
            self.hypervolume = progress.hypervolume

    settings, watcher = replace(QUICK, objectives=("time_s", "gflops"), searcher="random"), Watcher()
    with open_store(tmp_path / "a.db") as store:
        result = tune_program(
            LEVEL,
            MATMUL,
            budget=Budget(trials=6),
            settings=settings,
            store=store,
            listener=watcher,
            compares=False,
        )
        stored = store.run_trials(result.run.id, LoopsLevel().steps)
    baseline = LoopsLevel().baseline(result.task)
    assert (len(stored), stored[0].candidate) == (6, baseline)
    assert watcher.hypervolume is not None
    assert watcher.hypervolume == growth_of(stored, result.task.objectives, baseline)
    assert watcher.hypervolume.volumes[0] == (1, 1.0)


def test_there_are_no_more_workers_than_cores(caplog: pytest.LogCaptureFixture) -> None:
    cores = usable_cores()
    assert count_workers(Settings(workers=cores)) == cores
    assert not caplog.records
    assert count_workers(Settings(workers=100_000)) == cores
    assert f"100000 workers were requested; one for each core is used, {cores}" in caplog.text


RANDOM = Settings(searcher="random", workers=1)
MATMUL_TEXT = "C[m,n] += A[m,k] * B[k,n]"
IR = "define i32 @f(i32 %x) {\n  ret i32 %x\n}\n"
needs_hlo = pytest.mark.skipif(find_spec("iree") is None, reason="IREE is not installed")
needs_graph = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")


@dataclass(frozen=True)
class Asked:
    """What is loaded with an option, and what the target should say of it."""

    level: str
    source: str
    name: str
    value: str
    usual: str


def _loops(folder: Path) -> Asked:
    del folder
    text = level_named("loops").load(MATMUL_TEXT, {"size": "m=8,n=8,k=8"}).text
    usual = level_named("loops").target(level_named("loops").load(text, {}), 1).toolchain["backend"]
    return Asked("loops", text, "backend", "portable", usual)


def _llvm(folder: Path) -> Asked:
    del folder
    level = level_named("llvm")
    usual = level.target(level.load(IR, {}), 1).toolchain["backend"]
    return Asked("llvm", IR, "backend", "llvmlite-reduced", usual)


def _hlo(folder: Path) -> Asked:
    from levels.hlo.workloads import INFERENCE, PREDICT, write_all

    return Asked("hlo", str(write_all(folder, PREDICT, INFERENCE)), "backend", "iree", "xla")


def _graph(folder: Path) -> Asked:
    from levels.graph.models import convolutions, write

    return Asked("graph", str(write(convolutions(), folder / "net.onnx")), "optimization", "basic", "all")


@pytest.mark.parametrize(
    "make",
    [_loops, _llvm, pytest.param(_hlo, marks=needs_hlo), pytest.param(_graph, marks=needs_graph)],
)
def test_programs_carry_their_options_and_levels_remember_nothing(
    make: Callable[[Path], Asked], tmp_path: Path
) -> None:
    asked = make(tmp_path)
    level: Level = level_named(asked.level)
    special = level.load(asked.source, {asked.name: asked.value})
    usual = level.load(asked.source, {})
    target = level.target(special, 1)
    assert target.toolchain[asked.name] == asked.value
    assert level.target(usual, 1).toolchain[asked.name] == asked.usual
    again = level_named(asked.level)
    for program, where in ((special, target), (usual, level.target(usual, 1))):
        stored = again.read(program.text, where)
        assert (stored.text, again.target(stored, 1)) == (program.text, where)


def test_a_stored_run_is_validated_by_the_back_end_that_it_was_tuned_for(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    result = tune(
        MATMUL_TEXT,
        budget=Budget(trials=3),
        settings=RANDOM,
        store=path,
        size="m=16,n=16,k=16",
        backend="portable",
    )
    checked = validate(result.run.id, store=path)
    assert "x86" not in " ".join(check.detail for check in checked.checks)
    with open_store(path) as store:
        stored = read_result(store, result.run.id)
    assert stored.level.target(stored.task.program, 1) == result.task.target


def test_a_program_and_its_options_may_be_paths(tmp_path: Path) -> None:
    (tmp_path / "f.ll").write_text(IR)
    store, budget = tmp_path / "a.db", Budget(trials=2)
    result = tune(tmp_path / "f.ll", budget=budget, settings=RANDOM, store=store, function=Named("f"))
    assert "@f" in result.task.program.text


class Named:
    """What is no text, and has one."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text
