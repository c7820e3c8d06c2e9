"""The guided search on the spaces of all four levels, by costs that the features of their candidates tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pytest

from planish.core import Candidate, CanEvolve, CanFeaturise, Measured, Objective, Target
from planish.search import make_searcher
from planish.testing.driving import best_so_far, drive

TIME = Objective("time_s", "s")
SEEDS = 5
MODULE = """
func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %a = stablehlo.exponential %x : tensor<4x8xf32>
  %b = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %c = stablehlo.negate %b : tensor<4x8xf32>
  %d = stablehlo.add %c, %a : tensor<4x8xf32>
  %e = stablehlo.tanh %d : tensor<4x8xf32>
  return %e : tensor<4x8xf32>
}
"""


class Guidable(CanEvolve, CanFeaturise, Protocol):
    """What the guided search needs of a space."""


def _loops() -> Guidable:
    from planish.levels.loops.space import TemplateSpace
    from planish.levels.loops.workloads import matmul

    return TemplateSpace(matmul(96, 80, 60), Target(""))


def _llvm() -> Guidable:
    from planish.levels.llvm.passes import PassSpace, elements

    return PassSpace(tuple(elements().values())[:12])


def _hlo() -> Guidable:
    from planish.levels.hlo import program_from
    from planish.levels.hlo.space import PatchSpace

    return PatchSpace(program_from(MODULE))


def _graph() -> Guidable:
    pytest.importorskip("onnxruntime")
    from planish.levels.graph.passes import REWRITING, RUNTIME, Selection, passes_of_kind
    from planish.levels.graph.space import Letters, SelectionSpace

    rewrites, disables = (
        tuple(each.name for each in passes_of_kind(*kinds)) for kinds in (REWRITING, RUNTIME)
    )
    letters = Letters(rewrites[:8], disables[:8], offline=True)
    return SelectionSpace(lambda: letters, None, lambda _: (Selection(),))


@pytest.mark.parametrize("make", [_loops, _llvm, _hlo, _graph])
def test_it_finds_better_than_random_search_does(make: Callable[[], Guidable]) -> None:
    space = make()
    weights = np.random.default_rng(3).normal(size=space.schema.width)

    def outcome(candidate: Candidate) -> Measured:
        return Measured({"time_s": float(np.exp(0.1 * (space.features([candidate]) @ weights)[0]))})

    def found(name: str, **options: str) -> float:
        ways = list[float]()  # the whole way counts: both may end at the best that there is
        for seed in range(SEEDS):
            searcher = make_searcher(name, space, [TIME], seed, options)
            ways += [best for best in best_so_far(drive(searcher, outcome, 56, 8), TIME) if best]
        assert len(ways) == SEEDS * 56
        return float(np.mean(np.log(ways)))

    assert found("model-guided", model="none") < found("random")
