"""What a run is measuring is its own for as long as that takes, and no longer."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fake_executors import FakeExecutor, HashExecutor, SameProcessExecutor
from planish.core import Candidate, Evaluation
from planish.store import Store, open_store
from planish.testing.stores import begin
from planish.tuning.api import task_of, tune_program
from planish.tuning.recorder import Progress, Silent
from planish.tuning.settings import Budget, Settings
from tuning.tradeoff_level import Plain, Text, Trade

ALONE = 4
LEVEL, SETTINGS = Plain(), Settings(objectives=("time",), searcher="random", workers=1)


@contextmanager
def another(path: Path) -> Generator[tuple[Store, str]]:
    """Begin another run for the same task, as another process does."""
    with open_store(path) as store:
        yield store, begin(store, task_of(LEVEL, Text(), SETTINGS))


def test_a_lease_is_renewed_while_its_candidate_is_measured(tmp_path: Path) -> None:
    path, taken = tmp_path / "a.db", list[Candidate]()

    class Slow(FakeExecutor):
        def _evaluate(self, candidate: Candidate) -> Evaluation:
            time.sleep(1.0)
            taken.extend(store.lease(run, [candidate], 1))
            return Evaluation(candidate, Trade().outcome(candidate))

    with another(path) as (store, run), open_store(path) as own:
        own.lease_s = 0.5
        tune_program(
            LEVEL,
            Text(),
            budget=Budget(trials=1),
            settings=SETTINGS,
            store=own,
            executor=Slow(),
            compares=False,
        )
        assert taken == []


def test_what_a_search_leaves_unmeasured_is_free_before_its_end(tmp_path: Path) -> None:
    path, executor = tmp_path / "a.db", HashExecutor(["time_s"])

    class Watching(Silent):
        def ending(self, progress: Progress, what: str) -> None:
            del what
            left.update(executor.asked)
            left.difference_update(each.candidate for each in store.run_trials(progress.run_id, LEVEL.steps))
            free.update(store.lease(run, [*left], len(left)))

    left, free = set[Candidate](), set[Candidate]()
    with another(path) as (store, run):
        tune_program(
            LEVEL,
            Text(),
            budget=Budget(trials=40, target=1e9),
            settings=SETTINGS,
            store=path,
            executor=executor,
            start=SameProcessExecutor,
            listener=Watching(),
        )
    assert left
    assert free == left


def test_a_run_that_was_alone_takes_leases_once_there_is_another(tmp_path: Path) -> None:
    path, met, taken = tmp_path / "a.db", list[tuple[Store, str]](), list[Candidate]()

    class Met(FakeExecutor):
        def _evaluate(self, candidate: Candidate) -> Evaluation:
            seen.append(candidate)
            if len(seen) == ALONE:
                met.append(stack.enter_context(another(path)))
            if len(seen) > ALONE + 1:  # the one before was asked for when there was no other run
                [(store, run)] = met
                taken.extend(store.lease(run, [candidate], 1))
            return Evaluation(candidate, Trade().outcome(candidate))

    seen = list[Candidate]()
    with ExitStack() as stack:
        tune_program(
            LEVEL,
            Text(),
            budget=Budget(trials=3 * ALONE),
            settings=SETTINGS,
            store=path,
            executor=Met(),
            compares=False,
        )
    assert len(seen) == 3 * ALONE
    assert taken == []
