"""Reductions do something else, and start from what changes nothing by that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from levels.hlo.modules import assert_refused, evaluate, summing
from planish.core import Candidate, ScheduleError, rng
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.edits import Edit, ReplaceConstant, ReplaceReduction, identity_of
from planish.levels.hlo.patch import original, replay

BY_NUMPY: dict[str, Callable[..., Any]] = {
    "add": np.sum,
    "multiply": np.prod,
    "maximum": np.max,
    "minimum": np.min,
}


def program(element: str = "f32") -> Program:
    zero = "0.0" if "f" in element else "0"
    return program_from(f"""
func.func public @main(%x: tensor<4x3x{element}>) -> (tensor<4x{element}>, tensor<4x2x{element}>) {{
  %zero = stablehlo.constant dense<{zero}> : tensor<{element}>
  %a = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<4x3x{element}>, tensor<{element}>) -> tensor<4x{element}>
  %b = "stablehlo.reduce_window"(%x, %zero) <{{window_dimensions = array<i64: 1, 2>}}> ({{
  ^bb0(%p: tensor<{element}>, %q: tensor<{element}>):
    %r = stablehlo.add %q, %p : tensor<{element}>
    stablehlo.return %r : tensor<{element}>
  }}) : (tensor<4x3x{element}>, tensor<{element}>) -> tensor<4x2x{element}>
  return %a, %b : tensor<4x{element}>, tensor<4x2x{element}>
}}
""")


@pytest.mark.parametrize("element", ["f32", "i32"])
@pytest.mark.parametrize("by", ["multiply", "maximum", "minimum"])
def test_a_reduction_does_something_else(element: str, by: str) -> None:
    x = (rng(0, 1).normal(size=(4, 3)) * 5 - 20).astype(np.float32 if element == "f32" else np.int32)
    assert ReplaceReduction.match(original(program(element))) == {"1": "add", "4": "add"}
    module = replay(program(element), Candidate((ReplaceReduction("1", by), ReplaceReduction("4", by))))
    rows, windows = evaluate(module.root, x)
    np.testing.assert_allclose(rows, BY_NUMPY[by](x, axis=1), rtol=1e-5)
    pairs = np.stack([x[:, :2], x[:, 1:]])
    np.testing.assert_allclose(windows, BY_NUMPY[by](pairs, axis=0), rtol=1e-5)
    assert ReplaceReduction.match(module) == {"1": by, "4": by}


def test_back_and_forth_gives_the_same_module() -> None:
    there, back = ReplaceReduction("1", "maximum"), ReplaceReduction("1", "add")
    module = replay(program(), Candidate((there, back)))
    assert identity_of(module) == identity_of(original(program()))


def test_the_new_start_is_left_alone_as_all_starts_are() -> None:
    edit = ReplaceReduction("1", "maximum")
    with pytest.raises(ScheduleError, match="may not be changed"):
        replay(program(), Candidate((edit, ReplaceConstant(f"{edit.id_prefix}.0", 1.0))))


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (ReplaceReduction("1", "add"), "is by 'add' already"),
        (ReplaceReduction("1", "subtract"), "Known: add, multiply, maximum, minimum"),
        (ReplaceReduction("0", "add"), "may not be changed"),
        (ReplaceReduction("2", "maximum"), "is inside a reduction"),
    ],
)
def test_what_cannot_be_is_refused(edit: Edit, reason: str) -> None:
    assert_refused(program(), reason, edit)


def test_reductions_that_do_more_are_left_alone() -> None:
    assert not ReplaceReduction.match(original(summing()))
    with pytest.raises(ScheduleError, match="reduction '4' computes none of"):
        replay(summing(), Candidate((ReplaceReduction("4", "add"),)))
    with pytest.raises(ScheduleError, match="is not a reduction of one tensor"):
        replay(summing(), Candidate((ReplaceReduction("3", "add"),)))
