"""Conformance suite of stores, and inputs for tests of a store.

Subclass `StoreConformance` in a test module.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from planish.core import (
    Candidate,
    Failed,
    Lost,
    Measured,
    Objective,
    Outcome,
    Step,
    StoreError,
    Target,
    Task,
    Trial,
    TrialPrediction,
)

TIME = Objective("time_s", "s")
ERROR = Objective("error")


@dataclass(frozen=True)
class Tile(Step):
    """A step with an option of each kind that JSON can hold."""

    axis: str
    factors: tuple[int, ...] = (4,)
    share: float = 0.5
    last: bool = False
    note: str | None = None


STEPS: Mapping[str, type[Step]] = {"Tile": Tile}


@dataclass(frozen=True)
class Sheet:
    """A program that is nothing but a text."""

    text: str
    level: str = "sheets"


def make_task(text: str = "flat", *objectives: Objective, cores: int = 1, version: str = "1") -> Task:
    """Make a task; equal arguments make equal tasks, on any machine."""
    target = Target("anvil", frozenset({"hammer", "tongs"}), cores, {"smith": "3.1"})
    return Task(Sheet(text), target, objectives or (TIME,), version)


def make_candidate(number: int, steps: int = 2) -> Candidate:
    """Make a candidate with a number of steps; another for each number."""
    return Candidate(tuple(Tile("mnk"[i % 3], (number, i), note=f"“{i}”") for i in range(steps)))


def make_trial(index: int, number: int | None = None, *, cached: bool = False, steps: int = 2) -> Trial:
    """Make a trial; every third has failed, and every other was predicted.

    Args:
        index: its position in the run.
        number: names the candidate; the index where it is None.
        cached: whether the outcome was taken from the store.
        steps: how long the candidate is.
    """
    candidate = make_candidate(index if number is None else number, steps)
    seconds = {"build": 1e-3, "run": 0.1 + 0.2}
    prediction = TrialPrediction(0.1 * index, index // 4) if index % 2 else None
    ended = 1.7e9 + index / 8
    return Trial(candidate, _outcome(index), index, 7, seconds, "anvil-1", ended, cached, prediction)


def _outcome(index: int) -> Outcome:
    if index % 3 == 2:
        return Failed("build", "refused", f"step {index} \N{HAMMER}\n\0 \ud800")
    time = 1 / (index + 3)
    return Measured({"time_s": time, "gain": -time}, {"time_s": (time, time * 1.25, 5e-324)})


ENDS = ("finished", "stopped", "failed")


class StoreConformance:
    """Tests of a store; the docstrings of `planish.store.Store` are the contract.

    A subclass named `Test...` overrides both methods.
    """

    def open(self, *, read_only: bool = False) -> Any:
        """Open the store of this test, which is empty at first; each call makes another connection."""
        raise NotImplementedError

    def result_row(self, candidate: Candidate, ratio: float, data: Mapping[str, Any]) -> Any:
        """Make what `save_result` takes."""
        raise NotImplementedError

    def test_trials_come_back_as_they_were(self) -> None:
        added = [make_trial(i) for i in range(10)]
        with self.open() as store:
            run_id = begin(store)
            store.add_trials(run_id, added[:1])
            store.add_trials(run_id, [])
            store.add_trials(run_id, added[1:])
            assert store.run_trials(run_id, STEPS) == added
        with self.open(read_only=True) as store:
            assert store.run_trials(run_id, STEPS) == added
            assert store.trials(make_task().key, STEPS) == added

    def test_importance_is_that_which_was_stored_last(self) -> None:
        with self.open() as store:
            run_id = begin(store)
            assert store.run(run_id).importance == []
            store.save_importance(run_id, [("size", 2.0)])
            store.save_importance(run_id, [("depth", 0.1), ("size", -1.5)])
            store.finish_run(run_id)
        with self.open(read_only=True) as store:
            assert store.run(run_id).importance == [("depth", 0.1), ("size", -1.5)]

    def test_what_was_lost_is_not_kept(self) -> None:
        lost = Trial(make_candidate(1), Lost("run", "killed"), 1)
        with self.open() as store:
            run_id = begin(store)
            with pytest.raises(ValueError, match="lost"):
                store.add_trials(run_id, [make_trial(0), lost])
            assert store.run_trials(run_id, STEPS) == []

    def test_a_run_is_listed_by_index_and_a_task_by_storing(self) -> None:
        with self.open() as store:
            first, second, other = begin(store), begin(store), begin(store, make_task("another"))
            for run_id, index in [(second, 2), (first, 1), (second, 0), (other, 0), (first, 0)]:
                store.add_trials(run_id, [make_trial(index)])
            assert [t.index for t in store.run_trials(second, STEPS)] == [0, 2]
            assert [t.index for t in store.trials(make_task().key, STEPS)] == [2, 1, 0, 0]

    def test_what_was_taken_from_the_store_is_no_new_evidence(self) -> None:
        with self.open() as store:
            run_id = begin(store)
            store.add_trials(run_id, [make_trial(0), make_trial(1, 0, cached=True)])
            assert store.trials(make_task().key, STEPS) == [make_trial(0)]
            assert store.known(make_task().key, [make_candidate(0)]).popitem()[1] == make_trial(0)
            assert [t.cached for t in store.run_trials(run_id, STEPS)] == [False, True]

    def test_it_knows_the_last_measurement_of_a_candidate_for_a_task(self) -> None:
        first, again = make_trial(0, 5), make_trial(1, 5)
        with self.open() as store:
            run_id = begin(store)
            store.add_trials(run_id, [first, again, make_trial(2, 6)])
            asked = [make_candidate(n) for n in (5, 7, 6, 5)]
            known = store.known(make_task().key, asked)
            assert known == {asked[0].hash: again, asked[2].hash: make_trial(2, 6)}
            assert store.known(make_task("another").key, asked) == {}
            assert store.known(make_task().key, []) == {}

    def test_it_knows_many_at_once(self) -> None:
        added = [make_trial(i) for i in range(0, 2400, 2)]
        with self.open() as store:
            store.add_trials(begin(store), added)
            known = store.known(make_task().key, [make_candidate(i) for i in range(2400)])
        assert known == {trial.candidate.hash: trial for trial in added}

    def test_trials_are_added_all_or_none(self) -> None:
        with self.open() as store:
            run_id = begin(store)
            store.add_trials(run_id, [make_trial(1)])
            with pytest.raises(StoreError, match="already"):
                store.add_trials(run_id, [make_trial(0), make_trial(1)])
            assert store.run_trials(run_id, STEPS) == [make_trial(1)]
            store.add_trials(run_id, [make_trial(0)])
            assert store.run(run_id).trials == 2

    def test_a_run_has_one_writer(self) -> None:
        with self.open() as store, self.open() as other:
            run_id = begin(store)
            with pytest.raises(StoreError, match="writing to run"):
                other.resume_run(run_id)
            with pytest.raises(StoreError, match="not open for writing"):
                other.add_trials(run_id, [make_trial(0)])
            store.finish_run(run_id)
            other.resume_run(run_id)
            other.add_trials(run_id, [make_trial(0)])
            with pytest.raises(StoreError, match="not open for writing"):
                store.add_trials(run_id, [make_trial(1)])
            assert store.run_trials(run_id, STEPS) == [make_trial(0)]

    def test_runs_are_written_beside_each_other(self) -> None:
        with self.open() as store, self.open() as other:
            mine, theirs = begin(store), begin(other)
            for index in range(4):
                store.add_trials(mine, [make_trial(index)])
                other.add_trials(theirs, [make_trial(index)])
            assert store.run_trials(theirs, STEPS) == other.run_trials(mine, STEPS)

    def test_threads_may_share_it(self) -> None:
        with self.open() as store:
            run_ids = [begin(store) for _ in range(4)]

            def write(run_id: str) -> None:
                for index in range(20):
                    store.add_trials(run_id, [make_trial(index)])

            threads = [threading.Thread(target=write, args=[run_id]) for run_id in run_ids]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [store.run(run_id).trials for run_id in run_ids] == [20] * 4

    def test_a_run_tells_what_it_is_and_how_it_stands(self) -> None:
        with self.open() as store, self.open(read_only=True) as reader:
            run_id = begin(store)
            run = reader.run(run_id)
            assert (run.id, run.task_key, run.status, run.ended) == (run_id, make_task().key, "running", None)
            assert (run.searcher, run.space, run.seed) == ("random", "template", 3)
            assert (run.options, run.versions) == ({"trials": 50, "width": None}, {"planish": "0.1"})
            for index, status in enumerate(ENDS):
                store.add_trials(run_id, [make_trial(index)])
                store.finish_run(run_id, status, {"search": 0.5})
                ended = reader.run(run_id)
                assert (ended.status, ended.seconds, ended.trials) == (status, {"search": 0.5}, index + 1)
                assert ended.ended >= ended.started
                store.resume_run(run_id)
                assert (reader.run(run_id).status, reader.run(run_id).ended) == ("running", None)
        with self.open(read_only=True) as reader:
            assert reader.run(run_id).status == "interrupted"

    def test_an_interrupted_run_is_resumed(self) -> None:
        with self.open() as store:
            run_id = begin(store)
            store.add_trials(run_id, [make_trial(0)])
        with self.open() as store:
            store.resume_run(run_id)
            store.add_trials(run_id, [make_trial(1)])
            store.finish_run(run_id)
            assert store.run_trials(run_id, STEPS) == [make_trial(0), make_trial(1)]

    def test_runs_are_listed_newest_first(self) -> None:
        with self.open() as store:
            run_ids = [begin(store, make_task(text)) for text in "abab"]
            listed = store.runs()
            assert {run.id for run in listed} == set(run_ids)
            assert all(a.started >= b.started for a, b in pairwise(listed))
            assert {run.id for run in store.runs(make_task("a").key)} == set(run_ids[::2])
            assert store.runs(limit=2) == listed[:2]

    def test_a_unique_beginning_of_its_id_names_a_run(self) -> None:
        with self.open() as store:
            run_ids = {begin(store) for _ in range(17)}
            for run_id in run_ids:
                rest = run_ids - {run_id}
                unique = next(n for n in range(9) if not any(r.startswith(run_id[:n]) for r in rest))
                assert store.run(run_id[:unique].upper()).id == run_id
            shared = next(c for c in "0123456789abcdef" if sum(r[0] == c for r in run_ids) > 1)
            with pytest.raises(StoreError, match=f"begin with '{shared}'"):
                store.run(shared)

    @pytest.mark.parametrize("name", ["", "%", "_", "no such run"])
    def test_an_unknown_run_is_an_error(self, name: str) -> None:
        with self.open() as store:
            run_id = begin(store)
            with pytest.raises(StoreError, match="no run") as caught:
                store.run(name)
            assert run_id in caught.value.hint
            with pytest.raises(StoreError, match="no run"):
                store.resume_run(name)
            assert store.run_trials(name, STEPS) == []

    def test_a_task_comes_back_but_for_its_program(self) -> None:
        task = make_task("half \N{HAMMER}", TIME, ERROR, cores=3)
        with self.open() as store:
            begin(store, task)
            begin(store, task)
            stored = store.task(task.key)
            assert (stored.level, stored.program) == (task.level, task.program.text)
            assert stored.bind(task.program) == task
            with pytest.raises(StoreError, match="no task"):
                store.task("0" * 32)

    def test_a_result_is_kept_and_replaced(self) -> None:
        data = {"interval": [1.9, 2.1], "verdict": "faster", "samples": {"time_s": [0.1, 0.3]}}
        with self.open() as store:
            run_id = begin(store)
            assert store.result_rows(run_id, STEPS) == []
            store.save_result(run_id, [self.result_row(make_candidate(n), 0.5, {}) for n in (4, 5, 6)])
            store.save_result(run_id, [self.result_row(make_candidate(n), 2 - n, data) for n in (1, 0)])
        with self.open(read_only=True) as store:
            kept = store.result_rows(run_id, STEPS)
        assert [f.candidate for f in kept] == [make_candidate(1), make_candidate(0)]
        assert [(f.ratio, f.data, f.run_id) for f in kept] == [(1, data, run_id), (2, data, run_id)]

    def test_the_best_results_are_of_all_runs_with_the_same_aim(self) -> None:
        same = (make_task(), 1.5), (make_task("flat", TIME, ERROR), 2.5), (make_task(), 2.0)
        others = (
            make_task("flat", ERROR, TIME),
            make_task("round"),
            make_task(cores=2),
            make_task(version="2"),
        )
        with self.open() as store:
            assert store.best_results(make_task(), STEPS) == []
            for task, ratio in [*same, *((task, 9.0) for task in others)]:
                store.save_result(begin(store, task), [self.result_row(make_candidate(0), ratio, {})])
            assert [row.ratio for row in store.best_results(make_task(), STEPS)] == [2.5, 2.0, 1.5]

    def test_a_reader_sees_which_runs_have_changed(self) -> None:
        with self.open() as store:
            first = begin(store)
            with self.open(read_only=True) as reader:
                seen, number = [reader.stamps()], reader.changes()
                assert reader.changes() == number
                second = begin(store)
                store.add_trials(second, [make_trial(0)])
                seen.append(reader.stamps())
                assert number is None or reader.changes() != number
                store.save_result(second, [self.result_row(make_candidate(0), 2.0, {})])
                seen.append(reader.stamps())
                store.finish_run(second)
                seen.append(reader.stamps())
                store.delete_run(second)
                seen.append(reader.stamps())
            assert [first in each for each in seen] == [True] * 5
            assert len({each[first] for each in seen}) == 1
            assert [second in each for each in seen] == [False, True, True, True, False]
            assert len({each[second] for each in seen[1:4]}) == 3
            assert [each[second][1] for each in seen[1:4]] == [True, True, False]

    def test_trials_are_followed_in_the_order_of_storing(self) -> None:
        with self.open() as store:
            run_id, other = begin(store), begin(store, make_task("another"))
            store.add_trials(run_id, [make_trial(2), make_trial(0)])
            store.add_trials(other, [make_trial(5)])
            (found, row), *more = store.trials_after(run_id, 0, STEPS)
            assert ([t.index for t in found], more) == ([2, 0], [])
            assert list(store.trials_after(run_id, row, STEPS)) == []
            store.add_trials(other, [make_trial(6)])
            store.add_trials(run_id, [make_trial(1)])
            assert [t.index for found, _ in store.trials_after(run_id, row, STEPS) for t in found] == [1]

    def test_a_reader_cannot_write(self) -> None:
        with self.open() as store:
            run_id = begin(store)
            store.finish_run(run_id)
        with self.open(read_only=True) as reader:
            for write in (lambda: begin(reader), lambda: reader.resume_run(run_id)):
                with pytest.raises(StoreError, match="reading only"):
                    write()

    def test_values_that_are_not_finite_are_kept(self) -> None:
        with self.open() as store:
            run_id = begin(store)
            store.add_trials(run_id, [Trial(make_candidate(0), Measured({"error": float("inf")}))])
            assert store.run_trials(run_id, STEPS)[0].outcome == Measured({"error": float("inf")})

    @pytest.mark.parametrize("seed", [-1, 2**63])
    def test_a_seed_out_of_range_is_an_error(self, seed: int) -> None:
        with self.open() as store, pytest.raises(StoreError, match="seed"):
            store.begin_run(make_task(), searcher="random", space="template", seed=seed)


def begin(store: Any, task: Task | None = None) -> str:
    """Begin a run that the suite does not look into."""
    return store.begin_run(
        task or make_task(),
        searcher="random",
        space="template",
        seed=3,
        options={"trials": 50, "width": None},
        versions={"planish": "0.1"},
    )
