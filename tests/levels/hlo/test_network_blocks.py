"""Blocks, found by structure: what can be left out of a network, and is what it seems."""

from __future__ import annotations

import numpy as np

from levels.hlo.modules import evaluate
from planish.core import Candidate, rng
from planish.levels.hlo.edits import finished
from planish.levels.hlo.patch import original, replay
from planish.levels.hlo.program import Program
from planish.levels.hlo.space import PatchSpace, blocks

HEAD = "func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4x4xf32>) -> tensor<8x4xf32> {"
PRODUCT = "contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>"

RESIDUAL = f"""module {{ {HEAD}
  %0 = stablehlo.dot_general %x, %w, {PRODUCT}
  %1 = stablehlo.tanh %0 : tensor<8x4xf32>
  %2 = stablehlo.add %x, %1 : tensor<8x4xf32>
  %3 = stablehlo.dot_general %2, %v, {PRODUCT}
  %4 = stablehlo.add %2, %3 : tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}} }}"""
"""Two residual blocks: x + tanh(x w), and y + y v."""


def found(text: str) -> list[tuple[str, str]]:
    return [(block.entry, block.exit) for block in blocks(original(Program(text)))]


def test_residual_blocks_are_found_alone_and_together() -> None:
    """Operations are numbered in order from 0; a product of 8x4 by 4x4 takes 256 operations."""
    names = found(RESIDUAL)
    assert names[0] == ("arg0", "4"), "both together compute most"
    assert ("arg0", "2") in names
    assert ("2#0", "4") in names


def test_a_product_alone_is_a_block_where_nothing_joins() -> None:
    text = RESIDUAL.replace("stablehlo.add %x, %1", "stablehlo.add %1, %1")
    assert ("arg0", "0") in found(text)


def test_a_value_that_some_way_avoids_is_no_entry() -> None:
    """The input reaches the sum directly, so nothing inside the first block dominates it."""
    assert all(entry not in {"0#0", "1#0"} or exit_ in {"0", "1"} for entry, exit_ in found(RESIDUAL))


def test_other_types_are_no_blocks() -> None:
    text = """module { func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x3xf32>) -> tensor<8x3xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4x3xf32>) -> tensor<8x3xf32>
      %1 = stablehlo.tanh %0 : tensor<8x3xf32>
      return %1 : tensor<8x3xf32>
    } }"""
    assert found(text) == []


def test_a_function_without_arguments_has_no_blocks() -> None:
    text = """module { func.func @main() -> tensor<2xf32> {
      %0 = stablehlo.constant dense<1.0> : tensor<2xf32>
      return %0 : tensor<2xf32>
    } }"""
    assert found(text) == []


def test_what_is_left_computes_the_other_block_alone() -> None:
    """Without the first block the module is x + x v, in NumPy's words."""
    space = PatchSpace(Program(RESIDUAL))
    block = next(block for block in blocks(original(space.program)) if block.exit == "2")
    sizes = [(8, 4), (4, 4), (4, 4)]
    x, w, v = (rng(0, place).normal(size=size).astype(np.float32) for place, size in enumerate(sizes))
    (result,) = evaluate(finished(replay(space.program, Candidate((block.bypass,)))), x, w, v)
    np.testing.assert_allclose(result, x + x @ v, rtol=1e-5)
