"""Features of patches, and the count of what a module computes."""

from math import log2

import pytest

from levels.hlo.modules import chain, summing
from planish.core import Candidate, ScheduleError
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.edits import CopyOp, DeleteOp, Edit, ReplaceOperand, ScaleConstant, TileBatch
from planish.levels.hlo.flops import flops_of
from planish.levels.hlo.patch import original
from planish.levels.hlo.space import PatchSpace

NETWORK = program_from("""
func.func public @main(%x: tensor<4x8x8x3xf32>, %k: tensor<3x3x3x5xf32>, %w: tensor<5x6xf32>)
    -> tensor<4x8x8x6xf32> {
  %a = stablehlo.exponential %x : tensor<4x8x8x3xf32>
  %b = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<4x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<4x8x8x5xf32>
  %c = stablehlo.negate %b : tensor<4x8x8x5xf32>
  %d = stablehlo.dot_general %c, %w, contracting_dims = [3] x [0]
    : (tensor<4x8x8x5xf32>, tensor<5x6xf32>) -> tensor<4x8x8x6xf32>
  return %d : tensor<4x8x8x6xf32>
}
""")
"""Operations: 0 exponential, 1 convolution, 2 negate, 3 product, 4 return."""
CONVOLUTION, PRODUCT = 2 * 4 * 8 * 8 * 5 * 27, 2 * 4 * 8 * 8 * 6 * 5


def named(program: Program, *edits: Edit) -> dict[str, float]:
    space = PatchSpace(program)
    (row,) = space.features([Candidate(edits)])
    return dict(zip(space.schema.names, row.tolist(), strict=True))


def test_what_operations_take_is_counted_by_their_shapes() -> None:
    module = original(NETWORK)
    found = [flops_of(module, uid) for uid in "01234"]
    assert found == [4 * 8 * 8 * 3, CONVOLUTION, 4 * 8 * 8 * 5, PRODUCT, 0]
    assert flops_of(original(summing()), "4") == 4 * 3 + 1  # a reduction: what goes in, and its start


def test_the_unchanged_module_has_all_left() -> None:
    row = named(NETWORK)
    assert (row["edits"], row["remaining share of FLOPs"], row["remaining share of bytes"]) == (0, 1, 1)
    total = pytest.approx(log2(1 + CONVOLUTION + PRODUCT + 768 + 1280))
    assert row["remaining FLOPs"] == row["FLOPs"] == total
    assert row["layers"] == log2(1 + 3)
    assert row["remaining of kind convolution"] == 1


def test_features_are_the_kinds_of_edits_and_what_they_touch() -> None:
    row = named(NETWORK, DeleteOp("2", (("1#0", ()),)))
    assert (row["edits"], row["times DeleteOp"], row["times CopyOp"]) == (1, 1, 0)
    assert (row["touched of kind elementwise"], row["touched in layer 1"], row["layers touched"]) == (1, 1, 1)
    assert row["remaining share of FLOPs"] < 1


def test_what_an_edit_made_is_of_the_layer_where_it_was_put() -> None:
    copy = CopyOp("0", "3")
    row = named(NETWORK, copy, ReplaceOperand(copy.id_prefix, 0, "arg0"))
    assert row["touched in layer 0"] == 1  # what was copied
    assert row["touched in layer 2"] == 2  # where it was put, and the change of it
    assert row["remaining share of FLOPs"] == 1  # the copy has no user


def test_tiles_are_features() -> None:
    assert named(chain(), TileBatch(1))["tile"] == 0
    assert named(NETWORK, TileBatch(2))["tile"] == 1


def test_an_illegal_patch_is_an_error() -> None:
    with pytest.raises(ScheduleError):
        named(chain(), ScaleConstant("99", 2.0))
