"""Fewer channels: what is left is what NumPy computes of the weights that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from levels.hlo.modules import EXAMPLES, chain, evaluate, normals, summing
from planish.core import Candidate, ScheduleError, rng
from planish.levels.hlo import program_from
from planish.levels.hlo.edits import DropChannels, Edit, Lower, TileBatch, finished
from planish.levels.hlo.ir.normal import entry_text
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.program import read_program
from planish.levels.hlo.space import PatchSpace

NETWORK = """
func.func public @main(%x: tensor<6x3xf32>, %v: tensor<3x16xf32>, %b: tensor<16xf32>, %u: tensor<3x16xf32>,
                       %w: tensor<16x24xf32>, %o: tensor<24x4xf32>) -> tensor<6x4xf32> {
  %floor = stablehlo.constant dense<0.0> : tensor<6x16xf32>
  %slope = stablehlo.constant
    dense<[1.0, 2.0, 1.5, 0.5, 1.0, 2.0, 1.5, 0.5, 1.0, 2.0, 1.5, 0.5, 1.0, 2.0, 1.5, 0.5]>
    : tensor<16xf32>
  %h = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
    : (tensor<6x3xf32>, tensor<3x16xf32>) -> tensor<6x16xf32>
  %shift = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<6x16xf32>
  %wide = stablehlo.broadcast_in_dim %slope, dims = [1] : (tensor<16xf32>) -> tensor<6x16xf32>
  %a = stablehlo.add %h, %shift : tensor<6x16xf32>
  %c = stablehlo.multiply %a, %wide : tensor<6x16xf32>
  %r = stablehlo.maximum %c, %floor : tensor<6x16xf32>
  %m = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0]
    : (tensor<6x3xf32>, tensor<3x16xf32>) -> tensor<6x16xf32>
  %s = stablehlo.add %m, %r : tensor<6x16xf32>
  %y = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0]
    : (tensor<6x16xf32>, tensor<16x24xf32>) -> tensor<6x24xf32>
  %z = stablehlo.dot_general %y, %o, contracting_dims = [1] x [0]
    : (tensor<6x24xf32>, tensor<24x4xf32>) -> tensor<6x4xf32>
  return %z : tensor<6x4xf32>
}
"""
"""Two ways that are added, then two products, which are operations 10 and 11."""

SLOPE = np.tile(np.array([1, 2, 1.5, 0.5], np.float32), 4)
SHAPES = [(6, 3), (3, 16), (16,), (3, 16), (16, 24), (24, 4)]


def given() -> list[NDArray[np.float32]]:
    return normals(*SHAPES)


def result(*edits: Edit) -> Any:
    module = replay(program_from(NETWORK), Candidate(edits))
    return evaluate(finished(module), *given())[0]


def by_numpy(first: int, second: int) -> NDArray[Any]:
    """Keep so many channels after the sum, and after the product: those that the largest weights read."""
    x, v, b, u, w, o = given()
    kept, more = (np.argsort(-(each**2).sum(axis=1))[:n] for each, n in ((w, first), (o, second)))
    hidden = np.maximum((x @ v[:, kept] + b[kept]) * SLOPE[kept], 0) + x @ u[:, kept]
    return (hidden @ w[np.ix_(kept, more)]) @ o[more]


@pytest.mark.parametrize("keep", [1, 8, 15])
def test_producers_consumers_and_what_is_added_are_cut_alike(keep: int) -> None:
    np.testing.assert_allclose(result(DropChannels("10", keep)), by_numpy(keep, 24), rtol=1e-4, atol=1e-4)


def test_two_cuts_of_one_matrix_and_tiles() -> None:
    both = DropChannels("10", 8), DropChannels("11", 16)
    wanted = by_numpy(8, 16)
    np.testing.assert_allclose(result(*both), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(result(*both, TileBatch(4, loop=True)), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(result(DropChannels("10", 3), *both), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (DropChannels("10", 16), "16 of 16 channels cannot be kept"),
        (DropChannels("10", 0), "0 channels are none"),
        (DropChannels("4", 8), "does not sum over channels"),
        (DropChannels("12", 8), "may not be changed"),
    ],
)
def test_what_cannot_be_is_refused(edit: DropChannels, reason: str) -> None:
    with pytest.raises(ScheduleError, match=reason):
        result(edit)


def test_channels_that_something_counts_are_kept() -> None:
    """A sum over them, a result of the function, a loop, and a reshape that mixes them with others."""
    assert DropChannels.match(original(program_from(NETWORK))) == {"10": 16, "11": 24}
    assert not DropChannels.match(original(chain()))
    assert not DropChannels.match(original(summing()))
    named = NETWORK.replace("return %z : tensor<6x4xf32>", "return %s : tensor<6x16xf32>")
    named = named.replace("-> tensor<6x4xf32> {", "-> tensor<6x16xf32> {")
    assert "10" not in DropChannels.match(original(program_from(named)))


def test_a_network_is_cut_where_its_blocks_are_wide_and_along_its_residual_stream() -> None:
    program = read_program(EXAMPLES / "mobilenet.mlir")
    found = DropChannels.match(original(program))
    assert len(found) == 25
    assert list(found.values()).count(288) == 4, "the wide part of the four blocks of 48 channels"
    assert [edit.keep for edit in DropChannels.variants("792", 288)] == [248, 216, 144]
    stream, wide = (next(uid for uid, size in found.items() if size == n) for n in (48, 288))
    cut = Lower("0", "product"), DropChannels(stream, 40), DropChannels(wide, 248), TileBatch(10, loop=True)
    text = str(finished(replay(program, Candidate(cut))))
    assert "tensor<10x4x4x40xf32>" in text
    assert "tensor<10x4x4x248xf32>" in text
    assert "10x4x4x48xf32" not in text


def test_random_ones_answer() -> None:
    space = PatchSpace(program_from(NETWORK), ("DropChannels",))
    drawn = {space.mutate(space.start(), rng(1, index)).steps[0] for index in range(20)}
    assert drawn == {DropChannels("10", 8), DropChannels("11", 16), DropChannels("11", 8)}


def test_each_replay_gives_the_same_text() -> None:
    texts = {
        entry_text(finished(replay(program_from(NETWORK), Candidate((DropChannels("10", 8),)))), "main")
        for _ in range(8)
    }
    assert len(texts) == 1
