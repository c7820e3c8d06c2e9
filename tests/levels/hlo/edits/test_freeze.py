"""A step of training leaves parameters as they came, and computes no gradients for them."""

from __future__ import annotations

import numpy as np
import pytest

from levels.hlo.modules import EXAMPLES, assert_refused, evaluate, normals, summing
from planish.core import Candidate, rng
from planish.levels.hlo import Program, program_from, read_program
from planish.levels.hlo.edits import Freeze, identity_of
from planish.levels.hlo.patch import original, replay

ADAM = """
func.func public @main(%p: tensor<3x2xf32>, %m: tensor<3x2xf32>, %v: tensor<3x2xf32>, %b: tensor<2xf32>,
                       %n: tensor<i32>, %x: tensor<4x3xf32>, %y: tensor<4x2xf32>)
    -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<2xf32>, tensor<i32>, tensor<f32>) {
  %rate = stablehlo.constant dense<0.1> : tensor<3x2xf32>
  %slow = stablehlo.constant dense<0.9> : tensor<3x2xf32>
  %rest = stablehlo.constant dense<0.1> : tensor<3x2xf32>
  %some = stablehlo.constant dense<0.001> : tensor<3x2xf32>
  %little = stablehlo.constant dense<0.1> : tensor<2xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %h = stablehlo.dot_general %x, %p, contracting_dims = [1] x [0]
    : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %w = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<2xf32>) -> tensor<4x2xf32>
  %z = stablehlo.add %h, %w : tensor<4x2xf32>
  %e = stablehlo.subtract %z, %y : tensor<4x2xf32>
  %g = stablehlo.dot_general %x, %e, contracting_dims = [0] x [0]
    : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %gb = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4x2xf32>, tensor<f32>) -> tensor<2xf32>
  %m1 = stablehlo.multiply %slow, %m : tensor<3x2xf32>
  %m2 = stablehlo.multiply %rest, %g : tensor<3x2xf32>
  %m3 = stablehlo.add %m1, %m2 : tensor<3x2xf32>
  %v1 = stablehlo.multiply %slow, %v : tensor<3x2xf32>
  %v2 = stablehlo.multiply %g, %g : tensor<3x2xf32>
  %v3 = stablehlo.add %v1, %v2 : tensor<3x2xf32>
  %root = stablehlo.sqrt %v3 : tensor<3x2xf32>
  %safe = stablehlo.add %root, %some : tensor<3x2xf32>
  %way = stablehlo.divide %m3, %safe : tensor<3x2xf32>
  %far = stablehlo.multiply %rate, %way : tensor<3x2xf32>
  %p1 = stablehlo.subtract %p, %far : tensor<3x2xf32>
  %db = stablehlo.multiply %little, %gb : tensor<2xf32>
  %b1 = stablehlo.subtract %b, %db : tensor<2xf32>
  %n1 = stablehlo.add %n, %one : tensor<i32>
  %loss = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<4x2xf32>, tensor<f32>) -> tensor<f32>
  return %p1, %m3, %v3, %b1, %n1, %loss
    : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>, tensor<2xf32>, tensor<i32>, tensor<f32>
}
"""
"""A parameter with two moments, one without, a count and a loss."""


def adam() -> Program:
    return program_from(ADAM)


def test_updates_are_found_by_structure() -> None:
    """A count is none, and neither is a loss."""
    assert {index: names[0] for index, names in Freeze.match(original(adam())).items()} == {
        0: "arg0",
        1: "arg1",
        2: "arg2",
        3: "arg3",
    }
    assert Freeze.enumerate(original(adam())) == [Freeze((0, 1, 2)), Freeze((3,))]
    assert not Freeze.enumerate(original(summing()))


def test_a_frozen_parameter_stays_and_its_gradient_goes() -> None:
    shapes = [(3, 2), (3, 2), (3, 2), (2,)]
    parameters = [rng(4, index).random(size=shape).astype(np.float32) for index, shape in enumerate(shapes)]
    x, y = normals((4, 3), (4, 2), seed=5)
    given = (*parameters, np.int32(3), x, y)
    before = evaluate(original(adam()).root, *given)
    module = replay(adam(), Candidate((Freeze((0, 1, 2)),)))
    after = evaluate(module.root, *given)
    for index in range(6):
        wanted = parameters[index] if index < 3 else before[index]
        np.testing.assert_array_equal(after[index], wanted)
    assert [module.infos[uid].name for uid in module.live()].count("stablehlo.dot_general") == 1
    np.testing.assert_allclose(
        evaluate(replay(adam(), Candidate((Freeze((3,)),))).root, *given)[0], before[0], rtol=1e-6
    )


def test_a_result_may_be_named_twice() -> None:
    twice, once = (replay(adam(), Candidate((Freeze(results),))) for results in ((0, 0), (0,)))
    assert identity_of(twice) == identity_of(once)


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ((), "no result is named"),
        ((4,), "result 4 does not update an argument. Known: [0, 1, 2, 3]."),
        ((5,), "result 5 does not update"),
        ((6,), "result 6 does not update"),
        ((-1,), "result -1 does not update"),
    ],
)
def test_what_is_no_update_is_refused(results: tuple[int, ...], reason: str) -> None:
    assert_refused(adam(), reason, Freeze(results))


def test_a_step_of_training_has_a_part_for_each_parameter() -> None:
    module = original(read_program(EXAMPLES / "2fcnet.mlir"))
    assert Freeze.enumerate(module) == [Freeze((index,)) for index in range(4)]
