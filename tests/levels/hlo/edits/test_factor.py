"""Weights of a lower rank: what is left is what NumPy computes of the nearest matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from levels.hlo.modules import assert_refused, chain, evaluate
from planish.core import Candidate, rng
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.edits import Edit, Factor
from planish.levels.hlo.patch import original, replay

WEIGHTS = rng(0, 1).normal(size=(12, 10)).astype(np.float32)
X = rng(0, 2).normal(size=(4, 12)).astype(np.float32)


def text(values: NDArray[Any]) -> str:
    return str(values.tolist())


def product(kind: str = "f32", side: str = "right") -> Program:
    """A product of 4 x 12 numbers and constant weights, which stand on one side."""
    type_ = f"tensor<12x10x{kind}>"
    weights = text(WEIGHTS) if "f" in kind else text(WEIGHTS.astype(np.int32))
    names, dims, result = (
        ("%x, %w", "[1] x [0]", "4x10") if side == "right" else ("%w, %x", "[0] x [1]", "10x4")
    )
    types = f"tensor<4x12x{kind}>, {type_}" if side == "right" else f"{type_}, tensor<4x12x{kind}>"
    return program_from(f"""
func.func public @main(%x: tensor<4x12x{kind}>) -> tensor<{result}x{kind}> {{
  %w = stablehlo.constant dense<{weights}> : {type_}
  %y = stablehlo.dot_general {names}, contracting_dims = {dims} : ({types}) -> tensor<{result}x{kind}>
  return %y : tensor<{result}x{kind}>
}}
""")


def nearest(matrix: NDArray[np.float32], rank: int) -> NDArray[np.float32]:
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    return (left[:, :rank] * sizes[:rank]) @ right[:rank]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("rank", [1, 4])
def test_a_product_with_the_nearest_weights(side: str, rank: int) -> None:
    module = replay(product(side=side), Candidate((Factor("1", rank),)))
    wanted = X @ nearest(WEIGHTS, rank)
    found = evaluate(module.root, X)[0]
    np.testing.assert_allclose(found, wanted if side == "right" else wanted.T, rtol=1e-4, atol=1e-4)


def test_weights_that_are_turned_and_reshaped_are_constant_too() -> None:
    """As PyTorch writes a linear layer, and Keras a convolution of one pixel."""
    turned = text(WEIGHTS.T.reshape(2, 5, 12))
    program = program_from(f"""
func.func public @main(%x: tensor<4x12xf32>) -> tensor<4x10xf32> {{
  %w = stablehlo.constant dense<{turned}> : tensor<2x5x12xf32>
  %v = stablehlo.transpose %w, dims = [2, 0, 1] : (tensor<2x5x12xf32>) -> tensor<12x2x5xf32>
  %m = stablehlo.reshape %v : (tensor<12x2x5xf32>) -> tensor<12x10xf32>
  %y = stablehlo.dot_general %x, %m, contracting_dims = [1] x [0]
    : (tensor<4x12xf32>, tensor<12x10xf32>) -> tensor<4x10xf32>
  return %y : tensor<4x10xf32>
}}
""")
    assert Factor.match(original(program)) == {"3": 5}
    (found,) = evaluate(replay(program, Candidate((Factor("3", 4),))).root, X)
    np.testing.assert_allclose(found, X @ nearest(WEIGHTS, 4), rtol=1e-4, atol=1e-4)


KERNEL = rng(0, 3).normal(size=(3, 2, 5, 8)).astype(np.float32)
"""3 x 2 elements in space, 5 inputs, 8 outputs."""

LAYOUTS = {
    "last": ("[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", (0, 1, 2, 3), (0, 1, 2, 3)),
    "first": ("[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]", (0, 3, 1, 2), (3, 2, 0, 1)),
    "mixed": ("[f, 0, b, 1]x[i, 0, o, 1]->[b, f, 0, 1]", (3, 1, 0, 2), (2, 0, 3, 1)),
}
"""How a module writes a layout, and how images and kernels with channels last are transposed to have it."""


def convolution(layout: str, groups: int = 1, kernel: NDArray[np.float32] = KERNEL) -> Program:
    numbers, order, kernel_order = LAYOUTS[layout]
    weights = kernel.transpose(kernel_order)
    sizes = np.array([2, 7, 6, kernel.shape[2] * groups])[list(order)]
    result = [2, 8, 3, 4] if layout != "last" else [2, 3, 4, 8]
    x, k, y = (f"tensor<{'x'.join(map(str, shape))}xf32>" for shape in (sizes, weights.shape, result))
    return program_from(f"""
func.func public @main(%x: {x}) -> {y} {{
  %k = stablehlo.constant dense<{text(weights)}> : {k}
  %y = stablehlo.convolution(%x, %k) dim_numbers = {numbers},
    window = {{stride = [2, 1], pad = [[1, 0], [0, 0]], rhs_dilate = [1, 2]}}
    {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : ({x}, {k}) -> {y}
  return %y : {y}
}}
""")


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_a_convolution_with_the_nearest_weights(layout: str) -> None:
    """In any layout it gives what a convolution with these weights gives."""
    rank = 3
    matrix = nearest(KERNEL.reshape(30, 8), rank).reshape(KERNEL.shape)
    images = rng(0, 4).normal(size=(2, 7, 6, 5)).astype(np.float32).transpose(LAYOUTS[layout][1])
    found = evaluate(replay(convolution(layout), Candidate((Factor("1", rank),))).root, images)[0]
    wanted = evaluate(original(convolution(layout, kernel=matrix.astype(np.float32))).root, images)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_ranks_that_save_something_are_drawn() -> None:
    assert Factor.match(original(product())) == {"1": 5}, "12 x 10 numbers are fewer than 6 x 22"
    assert Factor.variants("1", 5) == [Factor("1", 3), Factor("1", 2), Factor("1", 1)]
    assert not Factor.match(original(chain()))


ARGUMENT = """
func.func public @main(%x: tensor<4x12xf32>, %w: tensor<12x10xf32>) -> tensor<4x10xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<4x12xf32>, tensor<12x10xf32>) -> tensor<4x10xf32>
  return %y : tensor<4x10xf32>
}
"""
BATCHED = """
func.func public @main(%x: tensor<2x4x3xf32>) -> tensor<2x4x3xf32> {
  %w = stablehlo.constant dense<1.0> : tensor<2x3x3xf32>
  %y = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<2x4x3xf32>, tensor<2x3x3xf32>) -> tensor<2x4x3xf32>
  return %y : tensor<2x4x3xf32>
}
"""


@pytest.mark.parametrize(
    ("program", "edit", "reason"),
    [
        (product(), Factor("1", 0), "weights of 12 x 10 cannot have rank 0. From 1 to 5 it saves something"),
        (product(), Factor("1", 6), "cannot have rank 6"),
        (product(), Factor("0", 2), "stablehlo.constant has no weights"),
        (product(), Factor("2", 2), "may not be changed"),
        (product("i32"), Factor("1", 2), "weights of i32 are not factored"),
        (program_from(ARGUMENT), Factor("0", 2), "are not constant. Factors of others would be computed"),
        (program_from(BATCHED), Factor("1", 1), "several products side by side"),
        (convolution("last", groups=2, kernel=KERNEL[:, :, :4]), Factor("1", 1), "a convolution of groups"),
    ],
)
def test_what_cannot_be_factored_is_refused(program: Program, edit: Edit, reason: str) -> None:
    assert_refused(program, reason, edit)
