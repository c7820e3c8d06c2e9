"""Scales that are multiplied into weights change no answer."""

from __future__ import annotations

import numpy as np
import pytest

from hlo.modules import EXAMPLES, chain, evaluate
from planish.core import Candidate, ScheduleError, rng
from planish.hlo import program_from
from planish.hlo.edits import Fold, foldable
from planish.hlo.patch import original, replay
from planish.hlo.program import read_program

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
    assert foldable(original(program)) == ("2",)
    shapes = [(4, 5, 3), (6, 3), (6,), (5,)]
    x, v, s, t = (rng(0, place).normal(size=shape).astype(np.float32) for place, shape in enumerate(shapes))
    draft = replay(program, Candidate((Fold(("2",)),)))
    scaled, other = evaluate(draft.root, x, v, s, t)
    np.testing.assert_allclose(scaled, x @ v.T * s, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other, x @ v.T * t[:, None], rtol=1e-5, atol=1e-5)
    assert foldable(draft) == ()
    made = {str(fact.results[0]) for fact in draft.mirror.facts.values() if fact.name == "stablehlo.multiply"}
    assert made == {"tensor<6x3xf32>", "tensor<4x5x6xf32>"}, (
        "the weights are scaled, and what is scaled by rows"
    )


@pytest.mark.parametrize("ops", [(), ("0",), ("4",), ("9",), ("2", "2")])
def test_what_is_no_scale_is_refused(ops: tuple[str, ...]) -> None:
    with pytest.raises(ScheduleError):
        replay(program_from(NETWORK), Candidate((Fold(ops),)))


def test_scales_are_found_in_any_form_of_a_network() -> None:
    """Of depthwise convolutions too, where they are convolutions."""
    for name, count in (("mobilenet", 35), ("mobilenet_original", 52)):
        draft = original(read_program(EXAMPLES / f"{name}.mlir"))
        assert len(foldable(draft)) == count
    assert not foldable(original(chain()))
