"""Fewer pixels: what is left is what the network computes of smaller images."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from levels.hlo.modules import evaluate, image_network, normals
from planish.core import Candidate, ScheduleError, candidate_from_json, rng
from planish.levels.hlo import Program, program_from
from planish.levels.hlo.edits import EDITS, Edit, Lower, Narrow, Shrink, TileBatch, finished, propose
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.space import PatchSpace


def given(side: int) -> list[NDArray[np.float32]]:
    shapes = [(4, side, side, 2), (3, 3, 2, 4), (4, 3), (4,)]
    return normals(*shapes)


def results(side: int, *edits: Edit) -> NDArray[np.float32]:
    module = replay(program_from(image_network(side)), Candidate(edits))
    (result,) = evaluate(finished(module), *given(side))
    return np.asarray(result)


@pytest.mark.parametrize("pixels", [4, 5, 6, 7])
def test_a_crop_computes_what_a_network_for_smaller_images_does(pixels: int) -> None:
    """The other network is written for that size, and its images are cut by NumPy: means stay means."""
    images, *weights = given(8)
    low = (8 - pixels) // 2
    part = images[:, low : low + pixels, low : low + pixels]
    (wanted,) = evaluate(original(program_from(image_network(pixels))).root, part, *weights)
    np.testing.assert_allclose(results(8, Shrink("arg0", pixels)), wanted, rtol=1e-5, atol=1e-6)


def test_each_second_pixel_is_kept() -> None:
    images, *weights = given(8)
    (wanted,) = evaluate(original(program_from(image_network(4))).root, images[:, :7:2, :7:2], *weights)
    np.testing.assert_allclose(results(8, Shrink("arg0", 4, 2)), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("pixels", "factor"), [(4, 2), (3, 2), (2, 3), (2, 4)])
def test_a_resize_computes_what_a_network_for_means_of_squares_does(pixels: int, factor: int) -> None:
    """What is left over at the edges is as much at both sides, up to one pixel."""
    images, *weights = given(8)
    low, reach = (8 - pixels * factor) // 2, pixels * factor
    middle = images[:, low : low + reach, low : low + reach]
    means = middle.reshape(4, pixels, factor, pixels, factor, 2).mean(axis=(2, 4))
    (wanted,) = evaluate(original(program_from(image_network(pixels))).root, means, *weights)
    found = results(8, Shrink("arg0", pixels, factor, mean=True))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    tiled = results(8, TileBatch(3), Shrink("arg0", pixels, factor, mean=True))
    np.testing.assert_allclose(tiled, wanted, rtol=1e-5, atol=1e-6)


def test_what_a_product_reads_can_be_pooled_early() -> None:
    """Means of squares, then of all: the product of the mean of all that it read before."""
    names = [info.name for info in original(program_from(image_network(8))).infos.values()]
    read = f"{names.index('stablehlo.dot_general') - 1}#0"
    pooled = results(8, Shrink(read, 2, 2, mean=True))
    np.testing.assert_allclose(pooled, results(8), rtol=1e-5, atol=1e-6)


def test_pixels_can_be_left_out_further_on_and_the_batch_be_tiled() -> None:
    """Of the operations, 11 is the product; what it reads, 10, keeps each second of four pixels.

    A mean over fewer pixels of a product is the product of the mean over these.
    """
    names = [draft_op.name for draft_op in original(program_from(image_network(8))).infos.values()]
    product = names.index("stablehlo.dot_general")
    edits = Shrink(f"{product - 1}#0", 2, 2), TileBatch(3)
    cut = image_network(8).replace("return %m : tensor<4x3xf32>", "return %s : tensor<4x4x4x4xf32>")
    cut = cut.replace("-> tensor<4x3xf32> {", "-> tensor<4x4x4x4xf32> {", 1)
    (before,) = evaluate(original(program_from(cut)).root, *given(8))
    wanted = np.asarray(before)[:, :3:2, :3:2].mean(axis=(1, 2)) @ given(8)[2]
    np.testing.assert_allclose(results(8, *edits), wanted, rtol=1e-5, atol=1e-6)


def test_of_several_for_a_value_the_last_counts_and_the_order_of_edits_does_not() -> None:
    assert np.array_equal(results(8, Shrink("arg0", 4), Shrink("arg0", 6)), results(8, Shrink("arg0", 6)))
    space = PatchSpace(program_from(image_network(8)))
    one, other = (Shrink("arg0", 6), TileBatch(2)), (TileBatch(2), Shrink("arg0", 6))
    assert (
        space.state_key(Candidate(one)) == space.state_key(Candidate(other)) != space.state_key(Candidate())
    )


def test_a_value_and_what_it_is_made_of_can_both_keep_fewer_pixels() -> None:
    """The shift that is added is made again for the first, and once more for the second."""
    convolution = "2#0"
    images, *weights = given(8)
    cut = original(program_from(image_network(6))).root
    (wanted,) = evaluate(cut, images[:, 1:7, 1:7], *weights)
    both = results(8, Shrink(convolution, 8), Shrink("arg0", 6))
    np.testing.assert_allclose(both, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "edit",
    [
        Shrink("arg0", 9),
        Shrink("arg0", 8, 2),
        Shrink("arg0", 0),
        Shrink("arg0", 4, 0),
        Shrink("arg0", -3, -1),
        Shrink("arg1", 1),
        Shrink("arg2", 1),
        Shrink("arg9", 4),
        Shrink("nothing", 4),
        Shrink("11#0", 1, 99),
        Shrink("arg0", 5, 2, mean=True),
    ],
)
def test_what_cannot_be_shrunk_is_refused(edit: Shrink) -> None:
    with pytest.raises(ScheduleError):
        replay(program_from(image_network(8)), Candidate((edit,)))


def test_whole_numbers_have_no_mean() -> None:
    text = """func.func public @main(%x: tensor<2x8x8x1xi32>) -> tensor<2x1xi32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %y = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1, 2]
        : (tensor<2x8x8x1xi32>, tensor<i32>) -> tensor<2x1xi32>
      return %y : tensor<2x1xi32>
    }"""
    replay(program_from(text), Candidate((Shrink("arg0", 4, 2),)))
    with pytest.raises(ScheduleError, match="no mean"):
        replay(program_from(text), Candidate((Shrink("arg0", 4, 2, mean=True),)))


@pytest.mark.parametrize(
    "body",
    [
        "%y = stablehlo.negate %x : tensor<2x8x8x1xf32>",
        "%y = stablehlo.add %x, %each : tensor<2x8x8x1xf32>",
        "%y = stablehlo.reverse %x, dims = [1] : tensor<2x8x8x1xf32>",
    ],
)
def test_where_each_pixel_is_needed_none_is_left_out(body: str) -> None:
    """As a result, at its own position beside another value, or by an operation that is not known."""
    text = f"""func.func public @main(%x: tensor<2x8x8x1xf32>,
                                     %each: tensor<2x8x8x1xf32>) -> tensor<2x8x8x1xf32> {{
      {body}
      return %y : tensor<2x8x8x1xf32>
    }}"""
    with pytest.raises(ScheduleError):
        replay(program_from(text), Candidate((Shrink("arg0", 6),)))


def test_it_is_read_back_from_its_json() -> None:
    candidate = Candidate((Shrink("arg0", 6), Shrink("10#0", 2, 2), Shrink("arg0", 4, 2, mean=True)))
    assert candidate_from_json([step.to_json() for step in candidate.steps], EDITS) == candidate


def test_crops_are_among_the_seeds_with_all_that_is_exact() -> None:
    steps = [seed.steps for seed in PatchSpace(Program(image_network(8))).seeds()]
    before = [edits[:-1] for edits in steps if edits[-1] == Shrink("arg0", 6)]
    assert [[type(edit) for edit in edits] for edits in before] == [
        [Lower, TileBatch, Narrow],
        [Lower, TileBatch],
    ]
    assert set(before) < set(steps)


def test_a_convolution_that_became_a_product_is_cropped_as_one() -> None:
    """The convolution is operation 2; what it meets is put side by side."""
    lower = Lower("2", "product")
    np.testing.assert_allclose(
        results(8, lower, Shrink("arg0", 5)), results(8, Shrink("arg0", 5)), rtol=1e-5, atol=1e-6
    )


def test_random_ones_give_modules_that_answer() -> None:
    module = original(program_from(image_network(8)))
    for number in range(10):
        edit, shrunk = propose(module, rng(number), ("Shrink",))
        assert isinstance(edit, Shrink)
        (result,) = evaluate(finished(shrunk), *given(8))
        assert result.shape == (4, 3)
        assert np.isfinite(result).all()
