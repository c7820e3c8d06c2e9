"""Products of 8-bit whole numbers are what NumPy computes with these scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from levels.hlo.edits.test_exact import computed
from levels.hlo.modules import assert_refused, chain, evaluate
from planish.core import Candidate, ScheduleError, rng
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.edits import Edit, Narrow, Quantize, ReplaceConstant, TileBatch, finished
from planish.levels.hlo.patch import original, replay

PRODUCTS = """
func.func public @main(%x: tensor<4x3x6xf32>, %w: tensor<4x5x6xf32>, %v: tensor<7x5xf32>)
    -> tensor<4x3x7xf32> {
  %a = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [2]
    : (tensor<4x3x6xf32>, tensor<4x5x6xf32>) -> tensor<4x3x5xf32>
  %b = stablehlo.dot_general %a, %v, contracting_dims = [2] x [1]
    : (tensor<4x3x5xf32>, tensor<7x5xf32>) -> tensor<4x3x7xf32>
  return %b : tensor<4x3x7xf32>
}
"""
X, W, V = (
    rng(0, index).normal(size=shape).astype(np.float32)
    for index, shape in enumerate([(4, 3, 6), (4, 5, 6), (7, 5)])
)


def whole(values: NDArray[Any], axes: tuple[int, ...]) -> NDArray[np.float32]:
    """Round to 127 steps of the largest number along some dimensions."""
    scale = np.maximum(np.abs(values).max(axes, keepdims=True), 1e-30) / np.float32(127)
    return np.round(values / scale) * scale


def result(*edits: Edit, given: tuple[Any, ...] = (X, W, V)) -> Any:
    return evaluate(finished(replay(program_from(PRODUCTS), Candidate(edits))), *given)[0]


def by_numpy(x: NDArray[Any]) -> NDArray[Any]:
    between = np.einsum("bik,bjk->bij", whole(x, (2,)), whole(W, (2,)))
    return whole(between, (2,)) @ whole(V, (1,)).T


def test_products_have_scales_of_rows_and_columns() -> None:
    assert Quantize.match(original(program_from(PRODUCTS))) == ("0", "1")
    found = result(Quantize(("0", "1")))
    np.testing.assert_allclose(found, by_numpy(X), rtol=1e-4, atol=1e-4)
    assert 0 < np.abs(found - result()).max() < 0.1 * np.abs(found).max()


def test_zeros_stay_zeros() -> None:
    zeros = np.zeros_like(X)
    np.testing.assert_array_equal(result(Quantize(("0", "1")), given=(zeros, W, V)), np.zeros((4, 3, 7)))


def convolution(groups: int = 1) -> Program:
    return program_from(f"""
func.func public @main(%x: tensor<4x{2 * groups}x6x5xf32>, %k: tensor<4x2x3x3xf32>) -> tensor<4x4x6x5xf32> {{
  %y = stablehlo.convolution(%x, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {{pad = [[1, 1], [1, 1]]}}
    {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
    : (tensor<4x{2 * groups}x6x5xf32>, tensor<4x2x3x3xf32>) -> tensor<4x4x6x5xf32>
  return %y : tensor<4x4x6x5xf32>
}}
""")


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("tiles", [(), (TileBatch(2),), (TileBatch(3, loop=True),)])
def test_convolutions_have_scales_of_images_and_outputs(groups: int, tiles: tuple[Edit, ...]) -> None:
    """Tiles of the batch give the same, for no image has to do with another."""
    x = rng(1, 0).normal(size=(4, 2 * groups, 6, 5)).astype(np.float32)
    k = rng(1, 1).normal(size=(4, 2, 3, 3)).astype(np.float32)
    module = replay(convolution(groups), Candidate((Quantize(("0",)), *tiles)))
    # By XLA: the interpreter sums convolutions of 8 bits in 8 bits.
    (found,) = computed(module, [x, k])
    (wanted,) = computed(original(convolution(groups)), [whole(x, (1, 2, 3)), whole(k, (1, 2, 3))])
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ((Quantize(()),), "no operation is named"),
        ((Quantize(("2",)),), "may not be changed"),
        ((Quantize(("0", "0")),), "no operation '0'"),
        ((Narrow(("0",)), Quantize(("0",))), "is not a product of 32-bit floats"),
    ],
)
def test_what_cannot_be_is_refused(edits: tuple[Edit, ...], reason: str) -> None:
    assert_refused(program_from(PRODUCTS), reason, *edits)


def test_only_products_of_floats_that_do_not_overflow() -> None:
    assert not Quantize.match(original(chain()))
    with pytest.raises(ScheduleError, match="is not a product"):
        replay(chain(), Candidate((Quantize(("1",)),)))
    long = PRODUCTS.replace("x6xf32", "x140000xf32")
    with pytest.raises(ScheduleError, match="sums more than 133144 products"):
        replay(program_from(long), Candidate((Quantize(("0",)),)))
    whole_numbers = PRODUCTS.replace("xf32", "xi32")
    assert not Quantize.match(original(program_from(whole_numbers)))


def test_starts_of_its_reductions_are_left_alone() -> None:
    edit = Quantize(("0",))
    start = f"{edit.id_prefix}.0.1"
    assert replay(program_from(PRODUCTS), Candidate((edit,))).infos[start].name == "stablehlo.constant"
    with pytest.raises(ScheduleError, match="may not be changed"):
        result(edit, ReplaceConstant(start, 5.0))
