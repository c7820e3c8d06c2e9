"""Results of tensor programs are functions of arrays, and what einsum selected is shown as any result is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from planish import tune
from planish.cli.commands import app
from planish.core import Candidate, PlanishError, ProgramError, Task
from planish.core.registry import level_named
from planish.einsum.backends import EinsumBackend, compile_kernel, contraction_of, multiplication
from planish.einsum.planning import TaskHistory, record, task_of
from planish.einsum.selection import Selection
from planish.levels.loops.backends import Library
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.store import open_store
from planish.tuning.result import read_result
from planish.tuning.settings import Budget, Settings

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(20, dtype=np.float32).reshape(4, 5)


def test_a_result_is_called_with_arrays(tmp_path: Path) -> None:
    result = tune(
        "C[m,n] += A[m,k]*B[k,n]",
        size="m=3,k=4,n=5",
        budget=Budget(trials=2),
        settings=Settings(finalists=1, workers=1),
        store=tmp_path / "a.db",
    )
    np.testing.assert_array_equal(result(A, B), A @ B)
    with pytest.raises(ProgramError, match=r"B is float32\[3, 4\]"):
        result(A, A)
    with open_store(tmp_path / "a.db") as store:
        np.testing.assert_array_equal(read_result(store, result.run.id)(A, B), A @ B)


@pytest.mark.parametrize("candidate", [Candidate(), Candidate((Library("numpy"),))])
def test_programs_of_several_outputs_and_constants_are_called(candidate: Candidate) -> None:
    """NumPy's implementation, which is the result where nothing is better, is called as a kernel is."""
    program = parse("S[] += X[i]; Y[i] = X[i] * W[i]", {"i": 6}, {}, "float64").with_constants(["W"])
    call = level_named("loops").function(planning_task(program), candidate)
    x, w = np.arange(6.0), np.arange(6.0) + 1
    total, scaled = call(x, w)
    assert (type(total), total) == (np.float64, 15.0)
    np.testing.assert_array_equal(scaled, x * w)
    with pytest.raises(ProgramError, match="1 operands given"):
        call(x)


def planning_task(program: Program) -> Task:
    level = LoopsLevel()
    return Task(program, level.target(program, 1), (level.objectives["time_s"],), level.version)


def test_results_of_other_levels_say_that_they_cannot_be_called() -> None:
    task = planning_task(parse("Y[i] = X[i]", {"i": 6}))
    with pytest.raises(PlanishError, match="'llvm' cannot be called"):
        level_named("llvm").function(task, Candidate())


@pytest.mark.parametrize("chosen", ["kernel", "matmul"])
def test_what_einsum_selected_is_shown(chosen: str, tmp_path: Path) -> None:
    contraction = contraction_of("mk,kn->mn", [A, B])
    task = task_of(contraction, 1)
    kernel = EinsumBackend("kernel", compile_kernel(contraction, Candidate(), task.target), 1, Candidate())
    backends = {
        "kernel": kernel,
        "matmul": EinsumBackend("matmul", np.dot),
        "einsum": EinsumBackend("einsum", np.einsum),
    }
    samples = {backend: [2e-6, 2.1e-6, 1.9e-6] for backend in backends.values()}
    samples[backends[chosen]] = [1e-6, 1.1e-6, 1.05e-6]
    path = tmp_path / "a.db"
    with open_store(path) as store:
        record(store, task, Selection(backends[chosen], samples), 1, TaskHistory())
        run = store.runs()[0].id
        assert read_result(store, run).gain == pytest.approx(1.9 if chosen == "kernel" else 1.0, abs=0.1)
    page = str(tmp_path / "page.html")
    for command in (["show", run], ["report", run, "--output", page], ["validate", run]):
        done = CliRunner().invoke(app, [*command, "--store", str(path)])
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("size", [8, 80])
def test_multiplications_report_no_overflow_as_einsum_reports_none(size: int) -> None:
    huge = np.full((size, size), 1e38, np.float32)
    backend = multiplication(contraction_of("ij,jk->ik", [huge, huge]))
    assert backend is not None
    with np.errstate(all="raise"):
        assert np.isinf(backend(huge, huge)).all()
        with pytest.raises(FloatingPointError):
            np.matmul(huge, huge)
