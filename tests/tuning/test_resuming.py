"""Runs that are resumed, and baselines that others are measured by."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from fake_executors import HashExecutor, SameProcessExecutor
from planish.core import (
    Candidate,
    Executor,
    Measured,
    Outcome,
    PlanishError,
    Searcher,
    Task,
    Trial,
    TrialPrediction,
)
from planish.core.registry import load_program
from planish.store import Store, open_store
from planish.tuning.api import tune_program
from planish.tuning.result import Result
from planish.tuning.settings import Budget, Settings
from tuning.tradeoff_level import Measuring, Plain, Text, Trade

loop_module = import_module("planish.tuning.search_loop")
ALL = list(Trade().candidates())
SMALL = Path(__file__).parents[1] / "levels" / "graph" / "small"

QUICK = Settings(workers=1, searcher="random")


class Killed(BaseException):
    """Ends a session where a kill would."""


class Mortal(HashExecutor):
    """Answers in any order; after so many answers the process is killed."""

    def __init__(self, shuffle: random.Random, most: float) -> None:
        super().__init__(["time_s"], shuffle.randint(1, 30), shuffle.randrange)
        self._most = most

    def outcome(self, candidate: Candidate) -> Outcome:
        if self._most <= 0:
            raise Killed
        self._most -= 1
        return Trade().outcome(candidate)


class Script(Searcher):
    """Proposes what it is told to."""

    def __init__(self, proposals: Sequence[Candidate]) -> None:
        self._left = list(proposals)

    def ask(self, n: int) -> Sequence[Candidate]:
        asked, self._left = self._left[:n], self._left[n:]
        return asked

    def tell(self, trials: Sequence[Trial]) -> None:
        assert all(isinstance(trial, Trial) for trial in trials)


def session(path: Path, proposals: Sequence[int], trials: int, executor: Mortal) -> dict[int, Trial]:
    """Go on with the one run of a store; gives its trials by index."""
    with open_store(path) as store:
        script = Script([ALL[number] for number in proposals])
        with suppress(Killed):
            tune_program(Plain(), Text(), budget=Budget(trials=trials), settings=QUICK, store=store,
                         executor=executor, compares=False, searcher=script)  # type: ignore[arg-type]  # fmt: skip
        (run,) = store.runs()
        stored = store.run_trials(run.id, Plain().steps)
    assert len({trial.index for trial in stored}) == len({trial.candidate for trial in stored}) == len(stored)
    return {trial.index: trial for trial in stored}


numbers = st.lists(st.integers(0, 39), min_size=1, max_size=40)
sessions = st.lists(st.tuples(numbers, st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=5)


@given(sessions, st.randoms(use_true_random=False))
@settings(max_examples=examples(40))
def test_a_stored_trial_keeps_its_index_however_proposals_change(
    history: list[tuple[list[int], int, int]], shuffle: random.Random
) -> None:
    before: dict[int, Trial] = {}
    with tempfile.TemporaryDirectory() as folder:
        for proposals, trials, killed_after in history:
            after = session(Path(folder) / "a.db", proposals, trials, Mortal(shuffle, killed_after))
            assert before.items() <= after.items()
            assert len(after) <= max(trials, len(before))
            before = after


@given(
    st.permutations(range(60)), st.lists(st.integers(0, 12), max_size=4), st.randoms(use_true_random=False)
)
@settings(max_examples=examples(30))
def test_a_run_killed_and_resumed_ends_as_the_uninterrupted_one(
    proposals: list[int], kills: list[int], shuffle: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found: dict[int, Trial] = {}
        for most in [*kills, 60]:
            found = session(Path(folder) / "a.db", proposals, 40, Mortal(shuffle, most))
    assert [found[index].candidate for index in range(40)] == [ALL[number] for number in proposals[:40]]
    assert len(found) == 40


def test_seconds_are_for_new_work(tmp_path: Path) -> None:
    """Replaying that takes longer than the budget leaves all of it to what is new."""

    class Slow(Script):
        def tell(self, trials: Sequence[Trial]) -> None:
            time.sleep(0.01 * len(trials))

    class Counted(Mortal):
        count = 0

        def outcome(self, candidate: Candidate) -> Outcome:
            Counted.count += 1
            time.sleep(0.02)
            return super().outcome(candidate)

    executor = Counted(random.Random(0), float("inf"))
    first = ALL[:64]
    session(tmp_path / "a.db", range(64), 64, Mortal(random.Random(0), float("inf")))
    slow = Slow([*first, *ALL[64:]])
    with open_store(tmp_path / "a.db") as store:
        result = tune_program(Plain(), Text(), budget=Budget(seconds=0.3), settings=QUICK, store=store,
                              executor=executor, compares=False, searcher=slow)  # type: ignore[arg-type]  # fmt: skip
    assert Counted.count > 0
    assert result.run.trials == 64 + Counted.count


def test_a_run_longer_than_any_barren_stretch_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "REPEATS_MAX", 2)
    session(tmp_path / "a.db", range(64), 64, Mortal(random.Random(0), float("inf")))
    found = session(tmp_path / "a.db", range(70), 70, Mortal(random.Random(0), float("inf")))
    assert [found[index].candidate for index in range(70)] == ALL[:70]


def tuned(
    store: Store, name: str, trials: int, executor: Executor | None = None
) -> tuple[Result, dict[int, Candidate]]:
    """Tune a small model; gives the result, and the candidates of its run by index."""
    level, program = load_program(str(SMALL / f"{name}.onnx"), "graph", {})
    chosen = Settings(workers=1, space="all")
    budget = Budget(trials=trials)
    result = tune_program(
        level, program, budget=budget, settings=chosen, store=store, executor=executor, compares=False
    )
    return result, {trial.index: trial.candidate for trial in store.run_trials(result.run.id, level.steps)}


@pytest.fixture
def by_name() -> Generator[HashExecutor]:
    pytest.importorskip("onnxruntime", reason="the level graph is not installed")
    with HashExecutor(["latency"]) as executor:
        yield executor


def test_a_run_is_taught_the_same_when_resumed(tmp_path: Path, by_name: HashExecutor) -> None:
    """A similar model is tuned in between, and others before: 50 are 25 and 25 all the same."""
    with open_store(tmp_path / "a.db") as store, open_store(tmp_path / "b.db") as other:
        for each in (store, other):
            tuned(each, "resnet50-small-dynamo-raw", 30, by_name)
        first, _ = tuned(store, "resnet50-small-torchscript", 25, by_name)
        tuned(store, "vgg16-small-torchscript", 40, by_name)
        tuned(store, "resnet50-small-dynamo-raw", 60, by_name)
        second, found = tuned(store, "resnet50-small-torchscript", 50, by_name)
        _, straight = tuned(other, "resnet50-small-torchscript", 50, by_name)
        assert first.run.id == second.run.id
        assert found == straight
        assert store.run(first.run.id).warm_start == other.runs()[0].warm_start
        assert store.run(first.run.id).warm_start


@pytest.mark.slow
def test_a_model_is_tuned_on_after_a_similar_one(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the level graph is not installed")
    with open_store(tmp_path / "a.db") as store:
        first, begun = tuned(store, "cnn-small-torchscript", 8)
        tuned(store, "cnn-small-dynamo-raw", 8)
        second, found = tuned(store, "cnn-small-torchscript", 14)
    assert first.run.id == second.run.id
    assert begun.items() <= found.items()
    assert set(found) == set(range(14))


def test_predictions_are_stored_with_trials_also_of_a_resumed_run(tmp_path: Path) -> None:
    settings = Settings(workers=1, searcher="model-guided", searcher_options={"model": "none"})

    def predictions(path: Path, *trials: int) -> list[TrialPrediction | None]:
        with open_store(path) as store:
            for most in trials:
                tune_program(
                    Plain(), Text(), budget=Budget(trials=most), settings=settings, store=store,
                    executor=HashExecutor(["time_s", "error"]), compares=False,
                )  # fmt: skip
            (run,) = store.runs()
            assert run.importance
            return [trial.prediction for trial in store.run_trials(run.id, Plain().steps)]

    straight = predictions(tmp_path / "a.db", 20)
    assert straight[0] is None
    assert straight[-1] is not None
    assert straight[-1].learned > 0
    assert predictions(tmp_path / "b.db", 10, 20) == straight


def test_a_session_that_fails_leaves_a_result_that_there_was(tmp_path: Path) -> None:
    path, numbers = tmp_path / "a.db", list(range(6))
    session(path, numbers, 4, Mortal(random.Random(0), 50))
    with open_store(path) as store:
        (before,) = store.runs()
        held = store.result_rows(before.id, Plain().steps)
    session(path, numbers, 6, Mortal(random.Random(0), 0))
    with open_store(path) as store:
        (after,) = store.runs()
        assert (before.status, after.status) == ("finished", "stopped")
        assert store.result_rows(after.id, Plain().steps) == held


def test_fewer_than_no_workers_are_refused_before_a_run_begins() -> None:
    with pytest.raises(PlanishError, match="workers= takes a whole number of at least 0, not -2"):
        Settings(workers=-2)


BOTH = ("time", "error")


@dataclass(frozen=True)
class Anchored(Measuring):
    """Notes what it is anchored to."""

    noted: list[float] = field(default_factory=list[float])

    def set_baseline(self, baseline: Outcome) -> None:
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


def tune(level: Relative, folder: Path, searcher: Searcher | None = None, **chosen: object) -> list[Trial]:
    """Search a little; gives the trials."""
    settings = Settings(**{"objectives": BOTH, "searcher": "random", **chosen})  # type: ignore[arg-type]
    with open_store(folder / "store.db") as store:
        result = tune_program(
            level,
            Text(),
            budget=Budget(trials=9),
            settings=settings,
            store=store,
            start=SameProcessExecutor,
            compares=False,
            searcher=searcher,
        )
        return list(store.run_trials(result.run.id, level.steps))


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


def test_a_searcher_learns_the_baseline_before_it_is_asked(tmp_path: Path) -> None:
    received: list[Candidate] = []

    class Recording(Searcher):
        def ask(self, n: int) -> Sequence[Candidate]:
            raise AssertionError(n)

        def tell(self, trials: Sequence[Trial]) -> None:
            received.extend(trial.candidate for trial in trials)
            raise KeyboardInterrupt

    tune(Relative(), tmp_path, Recording())
    assert received == [Candidate()]
