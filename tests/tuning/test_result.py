"""Results: pickled, and what is known of a baseline before it is measured."""

from __future__ import annotations

import copy
import faulthandler
import operator
import pickle
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from planish.core import Candidate, ProgramError, StoreError
from planish.levels.loops.backends import PREFERRED, Library, backend_named
from planish.levels.loops.export import function_of
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.runtime.dispatch import CompiledKernel
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Parallel
from planish.store import open_store
from planish.testing.stores import begin, make_task
from planish.tuning.api import tune_program
from planish.tuning.comparison import Comparison
from planish.tuning.result import Result, known_baseline, read_result
from planish.tuning.settings import Budget, Settings
from report.fronts import front

MATMUL = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 7, "n": 5, "k": 9})
A, B = np.arange(63, dtype=np.float32).reshape(7, 9), np.ones((9, 5), np.float32)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Result:
    store = tmp_path_factory.mktemp("pickled") / "s.db"
    return tune_program(
        LoopsLevel(),
        MATMUL,
        budget=Budget(trials=3),
        settings=Settings(workers=1),
        store=store,
        compares=False,
    )


def test_a_result_is_the_same_before_its_first_call_and_after_it(tuned: Result) -> None:
    before = pickle.dumps(tuned)
    np.testing.assert_array_equal(tuned(A, B), A @ B)
    for again in (pickle.loads(before), pickle.loads(pickle.dumps(tuned)), copy.deepcopy(tuned)):
        assert again == tuned
        np.testing.assert_array_equal(again(A, B), A @ B)


def test_trials_are_read_from_a_store_that_was_closed(tmp_path: Path) -> None:
    with open_store(tmp_path / "s.db") as store:
        found = tune_program(LoopsLevel(), MATMUL, budget=Budget(trials=2), store=store, compares=False)
        read, late = read_result(store, found.run.id), read_result(store, found.run.id)
        assert (read.task, read.stored_trials, read.best) == (found.task, found.stored_trials, found.best)
        assert (read.failures, len(read.stored_trials)) == (found.failures, found.run.trials)
    assert late.stored_trials == found.stored_trials
    assert (late.best, late.failures) == (found.best, found.failures)
    with pytest.raises(StoreError, match=f"the trials of run {found.run.id} are not at hand"):
        _ = pickle.loads(pickle.dumps(found)).stored_trials


def test_another_process_computes_with_a_result_and_its_function(tuned: Result) -> None:
    # Unlike a `multiprocessing.Pool`, it raises where its process ends, and does not wait for an answer.
    # It imports no test module: with pytest's importlib mode, that has no name that another process finds.
    end_if_it_hangs = partial(faulthandler.dump_traceback_later, 120, exit=True)
    with ProcessPoolExecutor(1, get_context("spawn"), end_if_it_hangs) as pool:
        for function in (tuned, tuned.function):
            np.testing.assert_array_equal(pool.submit(operator.call, function, A, B).result(), A @ B)


@pytest.mark.parametrize("candidate", [Candidate((Library("numpy"),)), None])
def test_functions_of_programs_are_pickled(candidate: Candidate | None) -> None:
    target = LoopsLevel().target(MATMUL, 1)
    function = function_of(MATMUL, candidate or TemplateSpace(MATMUL, target).start(), target)
    again = pickle.loads(pickle.dumps(function))
    np.testing.assert_array_equal(again(A, B), A @ B)
    with pytest.raises(ProgramError, match="1 operands given"):
        again(A)


@pytest.mark.parametrize("name", PREFERRED)
def test_kernels_are_pickled(name: str) -> None:
    tree = lower(Parallel("m").apply(unscheduled(MATMUL)))
    backend = backend_named(name)
    if not backend.works():
        pytest.skip(f"{name} does not work on this machine")
    kernel = backend.compile(MATMUL, tree, 2)
    assert isinstance(kernel, Kernel)
    again = pickle.loads(pickle.dumps(kernel))
    assert again.cores == 2
    for prefix in "ab":
        assert again.code.assembly(prefix) == kernel.code.assembly(prefix)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(CompiledKernel(again)))(A, B), A @ B)


def test_the_newest_comparison_that_can_be_read_tells_it(tmp_path: Path) -> None:
    comparisons = dict[str, Comparison | None]()

    def read(_: object, run_id: str, *__: object) -> Comparison | None:
        if run_id not in comparisons:
            raise StoreError("it is damaged")
        return comparisons[run_id]

    task, found = make_task(), front()
    with open_store(tmp_path / "a.db") as store:
        older, newer, newest = (begin(store, task) for _ in range(3))
        assert known_baseline(store, task, read) is None, "what cannot be read keeps no run from beginning"
        comparisons[older] = found
        assert known_baseline(store, task, read) == found.baseline.lead.median
        comparisons[newer], comparisons[newest] = None, None
        assert known_baseline(store, task, read) == found.baseline.lead.median
