"""Arguments of public functions: a value of a wrong type is refused in one sentence that names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, signature
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import planish
from planish import Budget, Settings, plot
from planish.callbacks import EarlyStopping
from planish.core import Measured, PlanishError, Trial
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import matmul
from planish.report import write_report
from planish.tuning.api import task_of

MATMUL = "C[m,n] += A[m,k] * B[k,n]"
ARRAY = np.ones((3, 3), np.float32)
CLASSES = (Budget, Settings, EarlyStopping)
FIGURES = [each for name in plot.__all__ if isinstance(each := getattr(plot, name), FunctionType)]
FUNCTIONS: list[Callable[..., Any]] = [
    planish.tune,
    planish.load_run,
    planish.runs,
    planish.open_store,
    planish.validate,
    planish.compile,
    planish.einsum,
    planish.kernel,
    write_report,
    planish.Result.export,
    *CLASSES,
    *FIGURES,
]
POSITIONAL = {"self", "operands", "subscripts"}
"""Arguments that are what `numpy.einsum` takes, or no arguments of the user."""


class Wrong:
    """A value that no argument takes."""

    def __repr__(self) -> str:
        return "<wrong>"


def cases() -> Iterator[Any]:
    for function in FUNCTIONS:
        for name, parameter in signature(function).parameters.items():
            first = name == next(iter(signature(function).parameters))
            # Of other figures the run has nothing to draw, which is an error of its own.
            checked = function not in FIGURES or first or function in (plot.history, plot.distribution)
            if checked and parameter.kind is not Parameter.VAR_KEYWORD and name not in POSITIONAL:
                yield pytest.param(function, name, id=f"{function.__name__}-{name}")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> planish.Result:
    level = LoopsLevel()
    task = task_of(level, matmul(8, 8, 8), Settings())
    with planish.open_store(tmp_path_factory.mktemp("store") / "planish.db") as store:
        run = store.begin_run(task, searcher="random", space="template", seed=0)
        candidate = level.space(task, "template").start()
        store.add_trials(run, [Trial(candidate, Measured({"time_s": 1.0}), 0, 0, {}, "host", 0.0)])
        store.finish_run(run)
    return planish.load_run(run, store=store)


def usual(function: Callable[..., Any], result: planish.Result, folder: Path) -> Mapping[str, Any]:
    """Return arguments that a function takes."""
    store = folder / "planish.db"
    if function in FIGURES:
        return {next(iter(signature(function).parameters)): result}
    return {
        planish.tune: {"program": MATMUL, "size": "m=8,n=8,k=8", "trials": 1, "store": store},
        planish.load_run: {"store": store},
        planish.validate: {"run_id": result.run.id, "store": store},
        planish.compile: {"model": folder / "model.onnx"},
        planish.Result.export: {"self": result, "path": folder / "out"},
        write_report: {"results": result, "path": folder / "report.html"},
        EarlyStopping: {"patience": 1},
    }.get(function, {})


@pytest.mark.parametrize(("function", "name"), list(cases()))
def test_a_value_of_a_wrong_type_is_refused(
    function: Callable[..., Any], name: str, result: planish.Result, tmp_path: Path
) -> None:
    arrays = ("ij,jk->ik", ARRAY, ARRAY) if function in (planish.einsum, planish.kernel) else ()
    with pytest.raises(PlanishError) as caught:
        function(*arrays, **{**usual(function, result, tmp_path), name: Wrong()})
    text = str(caught.value)
    assert "\n" not in text
    assert "wrong" in text.lower()
    assert name in text or function in FIGURES
    assert not (tmp_path / "planish.db").exists() or planish.runs(tmp_path / "planish.db") == []


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (planish.validate, {"run_id": "a", "pick": -1.5}),
        (planish.validate, {"run_id": "a", "files": 3}),
        (planish.validate, {"run_id": "a", "files": "model.onnx"}),
        (planish.load_run, {"files": [3]}),
        (planish.compile, {"model": "a.onnx", "shape": ["x=1"]}),
        (planish.compile, {"model": "a.onnx", "cores": 0}),
        (planish.compile, {"model": "a.onnx", "seconds": -1}),
        (planish.compile, {"model": "a.onnx", "tolerance": 0}),
        (planish.open_store, {"url": 3}),
        (planish.open_store, {"timeout": "3"}),
        (write_report, {"results": [], "path": 3}),
        (write_report, {"results": [3], "path": "a.html"}),
    ],
)
def test_a_wrong_value_is_named(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    name = list(arguments)[-1]
    with pytest.raises(PlanishError, match=f"^{'results' if arguments.get('results') else name}= takes "):
        function(**arguments)


def test_cores_of_einsum_that_cannot_be_hashed_are_refused() -> None:
    with pytest.raises(PlanishError, match=r"^cores= takes a whole number"):
        planish.einsum("ij,jk->ik", ARRAY, ARRAY, cores=[1])  # pyright: ignore[reportArgumentType]
