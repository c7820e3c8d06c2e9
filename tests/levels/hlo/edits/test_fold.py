"""Scales that are multiplied into weights change no answer."""

from __future__ import annotations

import numpy as np
import pytest

from levels.hlo.modules import EXAMPLES, chain, evaluate, normals
from planish.core import Candidate, ScheduleError
from planish.levels.hlo import program_from
from planish.levels.hlo.edits import Fold, Hoist
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.program import read_program

NETWORK = """
func.func public @main(%x: tensor<4x5x3xf32>, %v: tensor<6x3xf32>, %s: tensor<6xf32>, %t: tensor<5xf32>)
    -> (tensor<4x5x6xf32>, tensor<4x5x6xf32>) {
  %h = stablehlo.dot_general %x, %v, contracting_dims = [2] x [1]
    : (tensor<4x5x3xf32>, tensor<6x3xf32>) -> tensor<4x5x6xf32>
  %wide = stablehlo.broadcast_in_dim %s, dims = [2] : (tensor<6xf32>) -> tensor<4x5x6xf32>
  %y = stablehlo.multiply %wide, %h : tensor<4x5x6xf32>
  %other = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<5xf32>) -> tensor<4x5x6xf32>
  %z = stablehlo.multiply %h, %other : tensor<4x5x6xf32>
  return %y, %z : tensor<4x5x6xf32>, tensor<4x5x6xf32>
}
"""
"""Operations: 0 the product, 1 and 2 its scale by outputs, 3 and 4 one by what it reads."""


def test_scales_go_into_weights_and_others_keep_the_product() -> None:
    program = program_from(NETWORK)
    assert Fold.match(original(program)) == ("2",)
    x, v, s, t = normals((4, 5, 3), (6, 3), (6,), (5,))
    module = replay(program, Candidate((Fold(("2",)),)))
    scaled, other = evaluate(module.root, x, v, s, t)
    np.testing.assert_allclose(scaled, x @ v.T * s, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other, x @ v.T * t[:, None], rtol=1e-5, atol=1e-5)
    assert Fold.match(module) == ()
    made = {str(info.results[0]) for info in module.infos.values() if info.name == "stablehlo.multiply"}
    assert made == {"tensor<6x3xf32>", "tensor<4x5x6xf32>"}, (
        "the weights are scaled, and what is scaled by rows"
    )


@pytest.mark.parametrize("ops", [(), ("0",), ("4",), ("9",), ("2", "2")])
def test_what_is_no_scale_is_refused(ops: tuple[str, ...]) -> None:
    with pytest.raises(ScheduleError):
        replay(program_from(NETWORK), Candidate((Fold(ops),)))


LOOP = """
func.func public @main(%first: tensor<2x3xf32>, %w: tensor<3x3xf32>, %s: tensor<3xf32>, %by: tensor<4x3xf32>)
    -> tensor<2x3xf32> {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<4> : tensor<i32>
  %m:3 = stablehlo.while(%i = %start, %h = %first, %v = %w) : tensor<i32>, tensor<2x3xf32>, tensor<3x3xf32>
  cond {
    %more = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %p = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0]
      : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %wide = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %y = stablehlo.multiply %p, %wide : tensor<2x3xf32>
    %q = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0]
      : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %row = stablehlo.dynamic_slice %by, %i, %zero, sizes = [1, 3]
      : (tensor<4x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %now = stablehlo.reshape %row : (tensor<1x3xf32>) -> tensor<3xf32>
    %other = stablehlo.broadcast_in_dim %now, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %z = stablehlo.multiply %q, %other : tensor<2x3xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %z, %v : tensor<i32>, tensor<2x3xf32>, tensor<3x3xf32>
  }
  return %m#1 : tensor<2x3xf32>
}
"""
"""In the loop a product is scaled by the same numbers in each step, another by those of the step."""


def test_in_a_loop_weights_are_scaled_where_that_may_leave_it() -> None:
    program = program_from(LOOP)
    (scale,) = Fold.match(original(program))
    fold = Fold((scale,))
    moved = Hoist.match(replay(program, Candidate((fold,))))
    module = replay(program, Candidate((fold, Hoist(moved))))
    infos = module.infos.values()
    scaled = [f for f in infos if f.name == "stablehlo.multiply" and f.results[0] and not f.block]
    assert [str(info.results[0]) for info in scaled] == ["tensor<3x3xf32>"], "before the loop"
    h, w, s, by = normals((2, 3), (3, 3), (3,), (4, 3))
    (found,) = evaluate(module.root, h, w, s, by)
    for row in by:
        h = (h @ w * s) @ w * row
    np.testing.assert_allclose(found, h, rtol=1e-4, atol=1e-5)


def test_scales_are_found_in_any_form_of_a_network() -> None:
    """Of depthwise convolutions too, where they are convolutions."""
    for name, count in (("mobilenet", 35), ("mobilenet_original", 52)):
        module = original(read_program(EXAMPLES / f"{name}.mlir"))
        assert len(Fold.match(module)) == count
    assert not Fold.match(original(chain()))


SUMS = """
func.func public @main(%x: tensor<4x5x3xf32>, %v: tensor<6x3xf32>, %b: tensor<6xf32>, %m: tensor<6xf32>,
                       %s: tensor<6xf32>, %t: tensor<6xf32>, %r: tensor<5xf32>) -> tensor<4x5x6xf32> {
  %h = stablehlo.dot_general %x, %v, contracting_dims = [2] x [1]
    : (tensor<4x5x3xf32>, tensor<6x3xf32>) -> tensor<4x5x6xf32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<6xf32>) -> tensor<4x5x6xf32>
  %p = stablehlo.add %bias, %h : tensor<4x5x6xf32>
  %mrow = stablehlo.broadcast_in_dim %m, dims = [2] : (tensor<6xf32>) -> tensor<1x1x6xf32>
  %mean = stablehlo.broadcast_in_dim %mrow, dims = [0, 1, 2] : (tensor<1x1x6xf32>) -> tensor<4x5x6xf32>
  %c = stablehlo.subtract %p, %mean : tensor<4x5x6xf32>
  %srow = stablehlo.reshape %s : (tensor<6xf32>) -> tensor<1x1x6xf32>
  %scale = stablehlo.broadcast_in_dim %srow, dims = [0, 1, 2] : (tensor<1x1x6xf32>) -> tensor<4x5x6xf32>
  %y = stablehlo.multiply %c, %scale : tensor<4x5x6xf32>
  %shift = stablehlo.broadcast_in_dim %t, dims = [2] : (tensor<6xf32>) -> tensor<4x5x6xf32>
  %z = stablehlo.add %y, %shift : tensor<4x5x6xf32>
  %rows = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<5xf32>) -> tensor<4x5x6xf32>
  %o = stablehlo.add %z, %rows : tensor<4x5x6xf32>
  return %o : tensor<4x5x6xf32>
}
"""
"""A bias and a batch normalization (2 the bias, 5 its mean, 8 its scale, 10 its shift); 12 is by rows."""


@pytest.mark.parametrize(
    ("edits", "left"),
    [
        ((("5",),), ("add", "multiply", "add", "add")),
        ((("8",),), ("add", "subtract", "add", "add")),
        ((("5", "8"), ("10",)), ("add", "add")),
    ],
)
def test_scales_pass_sums_and_shifts_become_one(
    edits: tuple[tuple[str, ...], ...], left: tuple[str, ...]
) -> None:
    """A batch normalization behind a product and a bias is a product and a bias."""
    module = replay(program_from(SUMS), Candidate(tuple(map(Fold, edits))))
    infos = [module.infos[uid] for uid in module.live()]
    big = [info.name for info in infos if [*map(str, info.results)] == ["tensor<4x5x6xf32>"]]
    steps = [name.removeprefix("stablehlo.") for name in big]
    assert sorted(name for name in steps if name in ("add", "subtract", "multiply")) == sorted(left)
    x, v, b, m, s, t, r = arrays = normals((4, 5, 3), (6, 3), *[(6,)] * 4, (5,))
    (found,) = evaluate(module.root, *arrays)
    np.testing.assert_allclose(found, (x @ v.T + b - m) * s + t + r[:, None], rtol=1e-4, atol=1e-5)


def test_what_can_be_folded_is_listed_in_the_order_of_the_module() -> None:
    program = program_from(SUMS)
    first = Fold.match(original(program))
    assert first == ("5", "8")
    assert Fold.match(replay(program, Candidate((Fold(first),)))) == ("10",)


def test_a_sum_with_another_reader_is_not_scaled() -> None:
    both = SUMS.replace("add %z, %rows", "add %z, %c")
    assert Fold.match(original(program_from(both))) == ("5",)
    turned = SUMS.replace("subtract %p, %mean", "subtract %mean, %p")
    assert Fold.match(original(program_from(turned))) == ()
