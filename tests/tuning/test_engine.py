"""The engine: results in any order, and evaluations that are lost with their workers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from fake_executors import HashExecutor
from planish.core import (
    AllFailedError,
    Candidate,
    Level,
    LostError,
    Measured,
    Outcome,
    Program,
    Searcher,
    Task,
    Trial,
)
from planish.core.registry import load_program
from planish.measure.executors import ForkedExecutor
from planish.search import fitting_searchers
from planish.store import Store, open_store
from planish.testing.synthetic import Set
from planish.tuning.api import task_of, tune_program
from planish.tuning.recorder import Progress, Silent
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings
from tuning.tradeoff_level import Measuring, Mortal, Plain, Struck, Text, Trade

EXAMPLES = Path(__file__).parents[2] / "examples"
HLO = EXAMPLES / "hlo" / "2fcnet.mlir"
SOURCES: Mapping[str, tuple[Path, Mapping[str, str]]] = {
    "loops": (EXAMPLES / "matmul.loops", {}),
    "llvm": (EXAMPLES.parent / "benchmarks" / "llvm_functions" / "utf8.ll", {}),
    "hlo": (HLO, {"workload": str(HLO.with_suffix(".toml"))}),
    "graph": (EXAMPLES / "graph" / "cnn-small-torchscript.onnx", {}),
}
SPACES = {"loops": ("template", "steps"), "llvm": ("passes",), "hlo": ("patches",), "graph": ("all",)}
NEEDS = {"loops": "numpy", "llvm": "llvmlite", "hlo": "jaxlib", "graph": "onnxruntime"}
SMALL: Mapping[str, Mapping[str, int]] = {
    "genetic": {"population": 8},
    "nsga2": {"population": 8},
    "policy": {"improve": True},
    "portfolio": {"stage": 8},
    "random-minimize": {"samples": 8},
}
"""Rounds so small that some of them end within the trials."""
TRIALS = 24
ORDERS: Mapping[str, Callable[[int], int]] = {
    "last first": lambda count: count - 1,
    "any": random.randrange,
}


@cache
def program_of(level: str) -> tuple[Level, Program]:
    source, options = SOURCES[level]
    return load_program(str(source), level, options)


def proposals(
    level: Level,
    program: Program,
    settings: Settings,
    executor: HashExecutor,
    store: Store,
    trials: int,
    searcher: Searcher | None = None,
) -> list[Candidate]:
    """Search; gives the candidates of the run by index."""
    result = tune_program(
        level, program, budget=Budget(trials=trials), settings=settings, store=store, executor=executor,
        compares=False, searcher=searcher,
    )  # fmt: skip
    stored = store.run_trials(result.run.id, level.steps)
    assert [trial.index for trial in stored] == list(range(len(stored)))
    return [trial.candidate for trial in stored]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "space"), [(name, space) for name in SPACES for space in SPACES[name]])
def test_proposals_are_a_function_of_seed_and_outcomes(name: str, space: str, tmp_path: Path) -> None:
    """Each searcher, with answers in several orders and many or few under way, at once and resumed."""
    pytest.importorskip(NEEDS[name], reason=f"the level {name} is not installed")
    level, program = program_of(name)
    fitting = fitting_searchers(level.space(task_of(level, program, Settings(name)), space))
    assert fitting
    # None is shipped of the policies that `feedback` needs; tests/models/test_language_policy.py makes some.
    # What `remote` proposes is another program's; see tests/search/test_remote.py.
    fitting = [searcher for searcher in fitting if searcher not in ("feedback", "remote")]
    for searcher in fitting:
        several = ("error",) if name == "hlo" and searcher == "nsga2" else ()
        lead = next(iter(level.objectives))
        settings = Settings(
            name, (lead, *several), searcher, space, searcher_options=SMALL.get(searcher, {}), seed=5
        )
        with open_store(tmp_path / f"{searcher}.db") as store:
            straight = HashExecutor(settings.objectives, capacity=1)
            expected = proposals(level, program, settings, straight, store, TRIALS)
        # The surest of the lists that a model's space begins with leaves the model as it is: a way of one.
        least = 1 if (name, searcher) == ("graph", "policy") else 8
        assert len(expected) >= least, searcher
        for capacity, (order, choose) in zip((5, 64), ORDERS.items(), strict=True):
            with open_store(tmp_path / f"{searcher}-{order}.db") as store:
                for trials in (TRIALS // 2, TRIALS):
                    executor = HashExecutor(settings.objectives, capacity, choose)
                    found = proposals(level, program, settings, executor, store, trials)
                assert found == expected, (searcher, order)


class Noting(Searcher):
    """Proposes all of a space in its order; notes how many it was asked for, and what is told when."""

    def __init__(self, executor: HashExecutor) -> None:
        self._left, self._executor = list(Trade().candidates()), executor
        self.asked: list[int] = []
        self.told: list[tuple[int, int]] = []

    def ask(self, n: int) -> Sequence[Candidate]:
        self.asked.append(n)
        asked, self._left = self._left[:n], self._left[n:]
        return asked

    def tell(self, trials: Sequence[Trial]) -> None:
        self.told.append((len(trials), len(self._executor.asked)))


@pytest.mark.parametrize("capacity", [1, 2, 7, 64])
def test_as_much_is_asked_for_as_the_executor_has_capacity_for(capacity: int, tmp_path: Path) -> None:
    executor = HashExecutor(["time_s", "error"], capacity)
    noting = Noting(executor)
    settings = Settings(objectives=("time",), searcher="random")
    with open_store(tmp_path / "a.db") as store:
        proposals(Plain(), Text(), settings, executor, store, 144, noting)
    assert noting.asked[0] == capacity
    assert max(noting.asked) == capacity
    assert [count for count, _ in noting.told] == [1] * 144
    under_way = [submitted - answered for answered, (_, submitted) in enumerate(noting.told[:64])]
    assert max(under_way) <= capacity
    assert min(under_way) > (capacity - 1) // 2 - 1, "the executor was let run dry"


class Together(HashExecutor):
    """Has all results of what it was asked for at the same time."""

    @property
    def has_result(self) -> bool:
        return bool(self._open)


class Reading(Silent):
    """Reads, with a connection of its own, how many trials are stored when it is notified of one."""

    def __init__(self, path: Path) -> None:
        self._path, self.stored = path, list[int]()

    def trial(self, trial: Trial, progress: Progress) -> None:
        del trial
        with open_store(self._path, read_only=True) as store:
            self.stored.append(store.run(progress.run_id).trials)


def test_results_that_are_there_together_are_stored_together_before_any_is_told(tmp_path: Path) -> None:
    found = dict[str, list[int]]()
    for name, kind in (("one", HashExecutor), ("together", Together)):
        path = tmp_path / f"{name}.db"
        listener, settings = Reading(path), Settings(objectives=("time",), searcher="random")
        with open_store(path) as store:
            tune_program(
                Plain(), Text(), budget=Budget(trials=16), settings=settings,
                store=store, executor=kind(["time_s", "error"], 8), compares=False, listener=listener,
            )  # fmt: skip
        found[name] = listener.stored
    assert found == {"one": [*range(1, 17)], "together": [8] * 8 + [16] * 8}


class Concluding(Noting):
    """Concludes with the last candidate of the space, and reserves seconds for it after the first results."""

    def __init__(self, executor: HashExecutor, seconds: float = 0.0) -> None:
        super().__init__(executor)
        self._seconds = seconds

    @property
    def conclusion_s(self) -> float:
        return self._seconds if self.told else 0.0

    def conclude(self) -> Sequence[Candidate]:
        return list(Trade().candidates())[-1:]


def concluded(executor: HashExecutor, searcher: Concluding, budget: Budget, store: Store) -> list[Candidate]:
    result = tune_program(
        Plain(), Text(), budget=budget, settings=Settings(objectives=("time",), searcher="random"),
        store=store, executor=executor, compares=False, searcher=searcher,
    )  # fmt: skip
    return [trial.candidate for trial in store.run_trials(result.run.id, Plain().steps)]


def test_what_a_searcher_concludes_is_measured_once_the_budget_is_spent(tmp_path: Path) -> None:
    executor = HashExecutor(["time_s", "error"], 1)
    searcher, space = Concluding(executor), list(Trade().candidates())
    with open_store(tmp_path / "a.db") as store:
        found = concluded(executor, searcher, Budget(trials=3), store)
    assert found == [*space[:3], space[-1]]
    assert len(searcher.told) == 3, "it did not propose the last one"


def test_the_time_for_what_a_searcher_concludes_is_reserved(tmp_path: Path) -> None:
    executor = HashExecutor(["time_s", "error"], 1)
    # Nothing is left for the search, once its first candidate is measured.
    searcher, space = Concluding(executor, 3600.0), list(Trade().candidates())
    with open_store(tmp_path / "a.db") as store:
        found = concluded(executor, searcher, Budget(seconds=3600), store)
    assert found == [space[0], space[-1]]


def test_of_equals_the_first_proposed_is_the_best_whichever_is_answered_first() -> None:
    progress = Progress(task_of(Plain(), Text(), Settings(objectives=("time",))), "")
    outcome = Measured(dict.fromkeys((o.name for o in progress.task.objectives), 1.0))
    trials = [Trial(Candidate(), outcome, index) for index in (1, 0)]
    for trial in trials:
        progress.add(trial)
    assert progress.best is trials[1]


SETTINGS = Settings(objectives=("time",), searcher="random", workers=1)


def searched(path: Path, spec: Struck | None, trials: int = 30) -> tuple[Result, list[Trial]]:
    """Search; gives the result and what is stored."""
    level = Mortal(spec=spec)
    with open_store(path) as store:
        result = tune_program(
            level, Text(), budget=Budget(trials=trials), settings=SETTINGS, store=store, compares=False,
            start=ForkedExecutor,
        )  # fmt: skip
        return result, store.run_trials(result.run.id, level.steps)


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
    assert note.endswith("and repeated")


def test_what_is_lost_each_time_is_not_stored_and_asked_again(tmp_path: Path) -> None:
    _, undisturbed = searched(tmp_path / "calm.db", None)
    spec = Struck(noise=0.0, folder=tmp_path, value=2, times=3)
    struck, trials = searched(tmp_path / "struck.db", spec)
    spared = [each for each in told(undisturbed) if Set(0, 2) not in each[1].steps]
    assert told(trials) == spared
    assert struck.run.trials == len(spared)
    assert f"; {30 - len(spared)} without success; run the same command to try them again" in struck.notes[0]
    again, whole = searched(tmp_path / "struck.db", spec)
    assert again.run.id == struck.run.id
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
            tune_program(
                level, Text(), budget=Budget(trials=1), settings=settings, store=store, start=ForkedExecutor
            )
        assert caught.value.hint == "Run the same command to resume."
        (run,) = store.runs()
        assert (run.status, run.trials) == ("failed", 0)
        found = tune_program(
            level, Text(), budget=Budget(trials=1), settings=settings, store=store, compares=False,
            start=ForkedExecutor,
        )  # fmt: skip
    assert (found.run.id, found.run.trials) == (run.id, 1)


def test_a_comparison_that_cannot_be_costs_the_run_nothing(tmp_path: Path) -> None:
    class Final(Mortal):
        def evaluator(self, task: Task, *, final: bool = False) -> Measuring:
            usual = super().evaluator(task, final=final)
            return Struck(folder=tmp_path, times=99) if final else usual

    with open_store(tmp_path / "a.db") as store:
        settings = replace(SETTINGS, finalists=2)
        result = tune_program(
            Final(), Text(), budget=Budget(trials=9), settings=settings, store=store, start=ForkedExecutor
        )
        assert store.run(result.run.id).status == "finished"
    assert (result.finalists, result.run.trials) == ((), 9)
    (note,) = result.notes
    assert note.startswith("not compared with the baseline: 3 processes were lost while they measured it")
