"""Layouts and transposes: what moves changes no answer, and what meets its inverse goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from levels.hlo.modules import EXAMPLES, chain, evaluate, normals
from planish.core import Candidate, ScheduleError, rng
from planish.levels.hlo import Program, program_from, read_program
from planish.levels.hlo.edits import Edit, EditableModule, Relayout, SinkTransposes, finished
from planish.levels.hlo.patch import original, replay

STAGES = {
    "negate": "%{o} = stablehlo.negate %{i} : {t}",
    "scale": """%s{o} = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<3xf32>) -> {t}
  %{o} = stablehlo.multiply %s{o}, %{i} : {t}""",
    "constant": """%s{o} = stablehlo.constant dense<1.5> : {t}
  %{o} = stablehlo.add %{i}, %s{o} : {t}""",
    "itself": "%{o} = stablehlo.add %{i}, %{i} : {t}",
    "reverse": "%{o} = stablehlo.reverse %{i}, dims = [2, 0] : {t}",
    "pad": """%z{o} = stablehlo.constant dense<2.0> : tensor<f32>
  %w{o} = stablehlo.pad %{i}, %z{o}, low = [0, 1, 0], high = [0, 0, 2], interior = [0, 0, 0]
    : ({t}, tensor<f32>) -> tensor<2x4x6xf32>
  %{o} = stablehlo.slice %w{o} [0:2, 0:3, 1:5] : (tensor<2x4x6xf32>) -> {t}""",
    "join": """%j{o} = stablehlo.concatenate %{i}, %{i}, dim = 2 : ({t}, {t}) -> tensor<2x3x8xf32>
  %{o} = stablehlo.slice %j{o} [0:2, 0:3, 0:8:2] : (tensor<2x3x8xf32>) -> {t}""",
    "sums": """%z{o} = stablehlo.constant dense<0.0> : tensor<f32>
  %r{o} = stablehlo.reduce(%{i} init: %z{o}) applies stablehlo.add across dimensions = [1]
    : ({t}, tensor<f32>) -> tensor<2x4xf32>
  %{o} = stablehlo.broadcast_in_dim %r{o}, dims = [0, 2] : (tensor<2x4xf32>) -> {t}""",
    "windows": """%z{o} = stablehlo.constant dense<0.0> : tensor<f32>
  %{o} = "stablehlo.reduce_window"(%{i}, %z{o}) <{{
    padding = dense<[[0, 0], [1, 1], [2, 0]]> : tensor<3x2xi64>,
    window_dimensions = array<i64: 1, 3, 3>}}> ({{
  ^bb0(%a{o}: tensor<f32>, %b{o}: tensor<f32>):
    %c{o} = stablehlo.add %a{o}, %b{o} : tensor<f32>
    stablehlo.return %c{o} : tensor<f32>
  }}) : ({t}, tensor<f32>) -> {t}""",
    "product": """%{o} = stablehlo.dot_general %{i}, %weights, batching_dims = [0] x [0],
    contracting_dims = [2] x [2] : ({t}, tensor<2x4x4xf32>) -> {t}""",
    "turned twice": """%m{o} = stablehlo.transpose %{i}, dims = [2, 0, 1] : ({t}) -> tensor<4x2x3xf32>
  %n{o} = stablehlo.negate %m{o} : tensor<4x2x3xf32>
  %{o} = stablehlo.transpose %n{o}, dims = [1, 2, 0] : (tensor<4x2x3xf32>) -> {t}""",
    "reshape": """%m{o} = stablehlo.reshape %{i} : ({t}) -> tensor<6x4xf32>
  %{o} = stablehlo.reshape %m{o} : (tensor<6x4xf32>) -> {t}""",
}
"""Operations on 2 x 3 x 4 numbers, in the order that the function's transpose gives them."""


def program(stages: list[str]) -> Program:
    """Take numbers in another order, do some things with them, and give them back in their own."""
    body = [
        STAGES[stage].format(i=f"v{index}", o=f"v{index + 1}", t="tensor<2x3x4xf32>")
        for index, stage in enumerate(stages)
    ]
    lines = "\n  ".join(body)
    return program_from(f"""
func.func public @main(%x: tensor<4x2x3xf32>, %scale: tensor<3xf32>, %weights: tensor<2x4x4xf32>)
    -> tensor<4x2x3xf32> {{
  %v0 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  {lines}
  %y = stablehlo.transpose %v{len(stages)}, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %y : tensor<4x2x3xf32>
}}
""")


INPUTS = [
    rng(0, index).normal(size=shape).astype(np.float32)
    for index, shape in enumerate([(4, 2, 3), (3,), (2, 4, 4)])
]


def computed(module: EditableModule) -> NDArray[Any]:
    return evaluate(finished(module), *INPUTS)[0]


def count(module: EditableModule, name: str) -> int:
    return sum(module.infos[uid].name == f"stablehlo.{name}" for uid in module.live())


@given(st.lists(st.sampled_from(list(STAGES)), min_size=1, max_size=6))
@settings(max_examples=examples(40))
def test_whatever_transposes_move_past_the_answer_stays(stages: list[str]) -> None:
    before = original(program(["negate", *stages]))
    names = tuple(uid for uid, info in before.infos.items() if info.name == "stablehlo.transpose")
    # One transpose at least begins before what it can move past, or before the last.
    after = replay(program(["negate", *stages]), Candidate((SinkTransposes(names),)))
    np.testing.assert_allclose(computed(after), computed(before), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage not in ("product", "reshape", "sums")])
def test_no_transpose_is_left_between_two_that_undo_each_other(stage: str) -> None:
    after = replay(
        program([stage]), Candidate((SinkTransposes(SinkTransposes.match(original(program([stage])))),))
    )
    assert count(after, "transpose") == 0


def test_what_needs_the_order_keeps_one_transpose() -> None:
    """A reshape that mixes dimensions, and a result of the function."""
    after = replay(program(["negate", "reshape"]), Candidate((SinkTransposes(("0",)),)))
    assert count(after, "transpose") == 2
    order = [after.infos[uid].name.partition(".")[2] for uid in after.blocks[""]]
    assert order[:3] == ["negate", "transpose", "reshape"]


@pytest.mark.parametrize(
    ("ops", "reason"),
    [
        ((), "no transpose can move"),
        (("1",), "is not a transpose"),
        (("9",), "no operation '9'"),
        (("2",), "no transpose can move"),
    ],
)
def test_what_is_no_transpose_is_refused(ops: tuple[str, ...], reason: str) -> None:
    """The last one comes before a result."""
    with pytest.raises(ScheduleError, match=reason):
        replay(program(["negate"]), Candidate((SinkTransposes(ops),)))


NETWORK = """
func.func public @main(%x: tensor<2x3x6x5xf32>, %k: tensor<4x3x3x3xf32>, %s: tensor<4xf32>,
                       %m: tensor<4x4x1x1xf32>) -> (tensor<2x4x6x5xf32>, tensor<2x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %floor = stablehlo.constant dense<0.0> : tensor<2x4x6x5xf32>
  %a = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x3x6x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x5xf32>
  %w = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<4xf32>) -> tensor<2x4x6x5xf32>
  %b = stablehlo.multiply %a, %w : tensor<2x4x6x5xf32>
  %c = stablehlo.maximum %b, %floor : tensor<2x4x6x5xf32>
  %d = stablehlo.convolution(%c, %m) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x4x6x5xf32>, tensor<4x4x1x1xf32>) -> tensor<2x4x6x5xf32>
  %e = stablehlo.add %d, %c : tensor<2x4x6x5xf32>
  %f = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2, 3]
    : (tensor<2x4x6x5xf32>, tensor<f32>) -> tensor<2x4xf32>
  return %e, %f : tensor<2x4x6x5xf32>, tensor<2x4xf32>
}
"""
"""Two convolutions, 2 and 6, in the layout of PyTorch, and a residual sum."""


def answers(*edits: Edit) -> tuple[EditableModule, list[NDArray[Any]]]:
    shapes = [(2, 3, 6, 5), (4, 3, 3, 3), (4,), (4, 4, 1, 1)]
    given_ = normals(*shapes, seed=1)
    module = replay(program_from(NETWORK), Candidate(edits))
    return module, evaluate(finished(module), *given_)


def test_a_network_with_channels_last_transposes_what_comes_in_and_goes_out() -> None:
    _, wanted = answers()
    module, _ = answers(edit := Relayout(("2", "6")))
    assert str(module.root).count("[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]") == 2
    after, found = answers(edit, SinkTransposes(SinkTransposes.match(module)))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    # Of images: what comes in and the first result. Two kernels besides.
    assert count(module, "transpose") == 6
    assert count(after, "transpose") == 4


def test_layouts_go_there_and_back() -> None:
    _, wanted = answers()
    _, found = answers(there := Relayout(("2",)), Relayout((f"{there.id_prefix}.0.2",), "first"))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Relayout(()), "no operation is named"),
        (Relayout(("4",)), "is not a convolution"),
        (Relayout(("2",), "first"), "has its channels first already"),
        (Relayout(("2",), "middle"), "Known: last, first"),
        (Relayout(("2", "2")), "no operation '2'"),
    ],
)
def test_what_cannot_be_laid_out_is_refused(edit: Edit, reason: str) -> None:
    with pytest.raises(ScheduleError) as error:
        answers(edit)
    assert reason in str(error.value)


def test_what_has_its_channels_last_and_no_transposes_is_left_alone() -> None:
    for given_ in (original(read_program(EXAMPLES / "mobilenet_original.mlir")), original(chain())):
        assert not Relayout.match(given_)
        assert not SinkTransposes.match(given_)
    assert Relayout.match(original(program_from(NETWORK))) == ("2", "6")
