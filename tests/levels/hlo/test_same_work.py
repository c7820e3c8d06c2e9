"""Modules that differ in numbers alone take as long as each other, and are not timed."""

from __future__ import annotations

from pathlib import Path

import pytest

from levels.hlo.workloads import STEP, TRAINING, task, write_all
from planish.core import Candidate, Measured, evaluate
from planish.levels.hlo.edits import Edit, ReplaceConstant, ScaleConstant
from planish.levels.hlo.evaluator import evaluator_spec_of, work_of
from planish.measure.executors import InlineExecutor

MODULE = """
%a = stablehlo.constant dense<1.000000e-01> : tensor<f32>
%b = stablehlo.constant dense<1.000000e-01> : tensor<4x3xf32>
%c = stablehlo.constant dense<0.300000012> : tensor<bf16>
%d = stablehlo.constant dense<-7.000000e+00> : tensor<f32>
%e = stablehlo.constant dense<1.000000e+00> : tensor<f32>
%f = stablehlo.constant dense<0xFF800000> : tensor<f32>
%g = stablehlo.constant dense<3> : tensor<i32>
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("dense<0.300000012>", "dense<9.000000e-01>", True),
        ("dense<-7.000000e+00>", "dense<-5.000000e+00>", True),
        ("dense<1.000000e-01>", "dense<0.700000000>", True),  # both of them
        ("dense<1.000000e-01> : tensor<f32>", "dense<0.700000000> : tensor<f32>", False),  # no longer equal
        ("dense<0.300000012>", "dense<1.000000e-01>", False),  # equal now: computed once
        ("dense<-7.000000e+00>", "dense<7.000000e+00>", False),
        ("dense<0.300000012>", "dense<0.000000e+00>", False),
        ("dense<0.300000012>", "dense<1.000000e+00>", False),
        ("dense<0.300000012>", "dense<5.000000e-01>", False),
        ("dense<0.300000012>", "dense<1.000000e-38>", False),
        ("dense<0.300000012>", "dense<0x7FC0>", False),
        ("dense<1.000000e+00>", "dense<1.100000e+00>", False),
        ("dense<3>", "dense<5>", False),
    ],
)
def test_other_numbers_are_the_same_work_unless_a_compiler_makes_something_of_them(
    before: str, after: str, same: bool
) -> None:
    other = MODULE.replace(before, after)
    assert other != MODULE
    assert (work_of(other) == work_of(MODULE)) is same


@pytest.mark.parametrize("deciding", ["stablehlo.while", "stablehlo.power", "stablehlo.custom_call"])
def test_where_a_number_may_decide_how_much_is_done_only_the_same_is_the_same(deciding: str) -> None:
    text = f"{MODULE}%h = {deciding}(%c)\n"
    assert work_of(text) == work_of(text)
    assert work_of(text.replace("0.300000012", "0.9")) != work_of(text)


def measured(path: Path, edit: Edit, *, final: bool = False) -> list[Measured]:
    """Measure the unchanged module, as a run does first of all, and then one with an edit."""
    spec = evaluator_spec_of(task(write_all(path, STEP, TRAINING)), final=final)
    executor = InlineExecutor(spec())
    (unchanged,) = evaluate(executor, [Candidate()])
    spec.set_baseline(unchanged.outcome)
    (other,) = evaluate(executor, [Candidate((edit,))])
    assert isinstance(unchanged.outcome, Measured)
    assert isinstance(other.outcome, Measured)
    return [unchanged.outcome, other.outcome]


def test_a_larger_learning_rate_takes_exactly_as_long_in_a_search(tmp_path: Path) -> None:
    unchanged, larger = measured(tmp_path, ScaleConstant("3", 3.0))
    assert larger.values["error"] != unchanged.values["error"]
    assert larger.values["time_s"] == unchanged.values["time_s"]
    assert unchanged.samples
    assert not larger.samples, "it is not timed"


def test_what_a_compiler_may_make_simpler_is_timed(tmp_path: Path) -> None:
    _, halved = measured(tmp_path, ReplaceConstant("3", 0.5))
    assert halved.samples


def test_at_the_end_all_are_timed(tmp_path: Path) -> None:
    _, larger = measured(tmp_path, ScaleConstant("3", 3.0), final=True)
    assert larger.samples
