"""Modules of any arguments: examples, their own outputs, arrays of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from damaged_files import damage_zip
from levels.hlo.workloads import INFERENCE, PREDICT, write_all
from planish.core import Candidate, Failed, Measured, Outcome, PlanishError, ProgramError, evaluate
from planish.levels.hlo.edits import DeleteOp, ReplaceConstant
from planish.levels.hlo.evaluator import end_evaluator_spec
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.scored import ScoredProgram
from planish.levels.hlo.workload.examples import NamedInputs
from planish.measure.executors import InlineExecutor
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

EXAMPLES = Path(__file__).parents[4] / "examples" / "hlo"

SEVERAL = """
func.func public @main(%table: tensor<7x2xf32> loc("table"), %ids: tensor<3xi32> loc("ids"),
    %on: tensor<i1> loc("on")) -> (tensor<3x2xf32>, tensor<3xi32>) {
  %two = stablehlo.constant dense<2> : tensor<3xi32>
  %far = stablehlo.multiply %ids, %two : tensor<3xi32>
  %0 = "stablehlo.gather"(%table, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 2>}> : (tensor<7x2xf32>, tensor<3xi32>) -> tensor<3x2xf32>
  %1 = stablehlo.negate %0 : tensor<3x2xf32>
  %2 = stablehlo.select %on, %0, %1 : tensor<i1>, tensor<3x2xf32>
  return %2, %far : tensor<3x2xf32>, tensor<3xi32>
}
"""
"""Operations: 0 two, 1 far, 2 gather, 3 negate, 4 select."""


def load(source: Path, **options: str) -> ScoredProgram:
    return HloLevel().load(str(source), options)


def measured(program: ScoredProgram, *candidates: Candidate) -> list[Outcome]:
    of = task_of(HloLevel(), program, Settings())
    evaluator = end_evaluator_spec(of)()
    return [answer.outcome for answer in evaluate(InlineExecutor(evaluator), candidates)]


def values(outcome: Outcome) -> Any:
    assert isinstance(outcome, Measured), outcome
    return outcome.values


@pytest.fixture
def several(tmp_path: Path) -> Path:
    (tmp_path / "several.mlir").write_text(SEVERAL)
    return tmp_path / "several.mlir"


@pytest.mark.parametrize(
    ("name", "objective", "least", "most"),
    [("lstm", "loss", 20, 32), ("transformer", "error", 0.01, 0.5), ("regression", "loss", 0.003, 0.03)],
)
def test_the_examples_are_scored_by_their_targets(
    name: str, objective: str, least: float, most: float
) -> None:
    program = load(EXAMPLES / f"{name}.mlir")
    (outcome,) = measured(program, Candidate())
    assert {*values(outcome)} == {objective, f"{objective}_validation", f"{objective}_final"}
    assert least < values(outcome)[objective] < most
    assert [o.name for o in task_of(HloLevel(), program, Settings()).objectives] == ["time_s", objective]


def test_a_module_is_compared_with_its_own_outputs(several: Path) -> None:
    program = load(several, workload="outputs")
    other = Candidate((ReplaceConstant("0", 1.0),))
    same, changed, part = measured(program, Candidate(), other, Candidate((DeleteOp("4", (("2#0", ()),)),)))
    assert set(values(same).values()) == {0.0}
    assert 0 < values(changed)["error"] <= 1
    assert 0 < values(part)["error"] <= 1, "half of the calls are negated"
    assert HloLevel().load(program.text, {}) == program
    assert program.title == "@main: answering on random inputs"


def test_random_inputs_are_the_same_again_and_within_the_table(several: Path) -> None:
    program = load(several, workload="outputs")
    one, other = (NamedInputs(program.module, program.workload).calls("search").varying for _ in range(2))
    assert all((a[i] == b[i]).all() for a, b in zip(one, other, strict=True) for i in range(3))
    ids = np.stack([call[1] for call in one])
    assert ids.dtype == np.int32
    assert 0 <= ids.min() < ids.max() < 7
    assert len({call[0].tobytes() for call in one}) == len(one)


def test_arrays_are_for_all_calls_or_for_each(several: Path) -> None:
    arrays: dict[str, Any] = {
        "table": np.arange(14.0).reshape(7, 2),
        "ids": np.arange(30).reshape(10, 3) % 7,
        "on": np.arange(10) % 2 == 0,
    }
    np.savez(several.parent / "in.npz", **arrays)
    program = load(several, workload="outputs", data=str(several.parent / "in.npz"))
    inputs = NamedInputs(program.module, program.workload, at_the_end=True)
    assert [*inputs.fixed] == [0]
    assert inputs.fixed[0].dtype == np.float32
    parts = [inputs.calls(part).varying for part in ("search", "validation", "final")]
    assert [*map(len, parts)] == [4, 4, 2]
    assert {tuple(call[1]) for part in parts for call in part} == {*map(tuple, arrays["ids"])}
    assert set(values(measured(program, Candidate())[0]).values()) == {0.0}


def test_rows_are_shuffled_with_their_targets() -> None:
    program = load(EXAMPLES / "regression.mlir")
    calls = NamedInputs(program.module, program.workload).calls("search")
    with np.load(EXAMPLES / "regression.npz") as found:
        known = dict(zip(map(tuple, found["x"]), map(tuple, found["targets"]), strict=True))
    rows, targets = np.concatenate([call[0] for call in calls.varying]), calls.targets
    assert targets is not None
    assert [known[tuple(row)] for row in rows] == [*map(tuple, targets)]


def test_arrays_of_a_damaged_file_are_one_line(several: Path) -> None:
    path = several.parent / "in.npz"
    np.savez_compressed(path, table=np.zeros((7, 2), "f"))
    damage_zip(path)
    with pytest.raises(ProgramError, match="cannot read the inputs '") as caught:
        load(several, workload="outputs", data=str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ids": np.zeros((10, 4), int)}, r"'ids'.*\[10, 4\], the module takes tensor<3xi32>"),
        ({"ids": np.zeros((10, 3))}, "'ids' of the inputs is float64"),
        ({"idz": np.zeros(3)}, "no argument 'idz'.*Did you mean 'ids'"),
        ({"on": None}, "no array 'on'"),
        ({"on": np.zeros(9, bool)}, "10 calls by 'ids' and 9 calls by 'on'"),
        ({"ids": np.zeros((2, 3), int), "on": np.zeros(2, bool)}, "asks for 9 calls, the data is for 2"),
    ],
)
def test_arrays_that_do_not_fit_are_one_line(several: Path, change: dict[str, Any], said: str) -> None:
    whole = {"table": np.zeros((7, 2), "f"), "ids": np.zeros((10, 3), int), "on": np.zeros(10, bool)}
    arrays: dict[str, Any] = {k: v for k, v in {**whole, **change}.items() if v is not None}
    np.savez(several.parent / "in.npz", **arrays)
    with pytest.raises(ProgramError, match=said) as caught:
        load(several, workload="outputs", data=str(several.parent / "in.npz"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        ("mse", "needs targets"),
        ("top-one", "Did you mean 'top-5'"),
        ("nowhere.py:score", "cannot read the metric"),
        ("mine.py", "names no function. Write metric=.mine.py:FUNCTION"),
    ],
)
def test_metrics_that_do_not_fit_are_one_line(several: Path, metric: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said) as caught:
        load(several, workload="outputs", metric=metric)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def score(a, t): return 0\n", "has no function 'gone'"),
        ("def score(gone, t): return gone.gone\n", "has no function 'gone'"),
        ("def gone(:\n", "fails: SyntaxError"),
        ("\0", "fails: SyntaxError|fails: ValueError"),
    ],
)
def test_a_function_that_is_not_in_its_file_is_reported_before_anything_runs(
    several: Path, text: str, said: str
) -> None:
    code = several.parent / "mine.py"
    code.write_text(text)
    with pytest.raises(ProgramError, match=said) as caught:
        load(several, workload="outputs", metric=f"{code}:gone")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "def gone(a, t): return 0",
        "from m import score as gone",
        "import m\ngone = m.score",
        "from m import *",
    ],
)
def test_a_file_may_bind_its_function_in_any_way(several: Path, text: str) -> None:
    """It is not executed yet: the module that it imports is not there."""
    code = several.parent / "mine.py"
    code.write_text(text + "\n")
    assert load(several, workload="outputs", metric=f"{code}:gone").workload.metric == "gone"


def test_code_runs_only_where_the_user_names_it(several: Path) -> None:
    toml = several.with_suffix(".toml")
    toml.write_text('metric = "mine"\n[inputs]\n[code]\npath = "mine.py"\n')
    with pytest.raises(ProgramError, match="names code"):
        load(several)


def test_a_metric_that_fails_is_a_failure_of_the_candidate(several: Path) -> None:
    code = several.parent / "mine.py"
    code.write_text("def first(answers, targets): return 1 / abs(answers[1] - targets[1]).max().item()\n")
    program = load(several, workload="outputs", metric=f"{code}:first")
    same, other = measured(program, Candidate(), Candidate((ReplaceConstant("0", 1.0),)))
    assert same == Failed("verify", "the metric fails", "'first' raises ZeroDivisionError: division by zero")
    assert {*values(other)} == {"loss", "loss_validation", "loss_final"}


def test_images_have_other_metrics_too(tmp_path: Path) -> None:
    module = write_all(tmp_path, PREDICT, INFERENCE)
    (error,) = measured(load(module, metric="top-2"), Candidate())
    (loss,) = measured(load(module, metric="cross-entropy"), Candidate())
    (first,) = measured(load(module), Candidate())
    assert values(error)["error_final"] <= values(first)["error_final"] - 0.04, "of 20 examples"
    assert values(loss)["loss"] > 0
    for metric, said in (("top-3", "never wrong"), ("mse", r"Add a section \[inputs\]")):
        with pytest.raises(ProgramError, match=said):
            load(module, metric=metric)


def test_an_objective_that_the_metric_does_not_give_is_one_line(tmp_path: Path) -> None:
    program = load(write_all(tmp_path, PREDICT, INFERENCE))
    asked = task_of(HloLevel(), program, Settings(objectives=("time", "loss")))
    with pytest.raises(PlanishError, match=r"gives no 'loss'. It gives objective=.error"):
        HloLevel().evaluator(asked)
