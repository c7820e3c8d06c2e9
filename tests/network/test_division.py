"""Division of layers among cores: schedules by rows, and the choice among divisions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from levels.loops.running import wrong_in_tree
from network.compiled import laid_out
from network_models import ModelWriter
from planish.core.task import usable_cores
from planish.levels.loops.backends import this_machine, tree_of
from planish.levels.loops.ir.tree import Loop
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.space.template import TemplateSpace
from planish.network.division import divide_rows, division_of, transfer_times
from planish.network.fusion import FusedKernel, kernels_of
from planish.network.library.schedule import compile_schedule
from planish.network.rewrites.pipeline import rewrite
from planish.network.tuning import combine_quickest

pytestmark = pytest.mark.skipif(usable_cores() < 2, reason="this process may use one core")
PRODUCT = "T[p, k] += I0[p, c] * I1[k, c]; O[p, k] = relu(T[p, k])"


@pytest.mark.slow
@pytest.mark.parametrize("rows", [13, 49, 50, 196, 784])
def test_threads_share_rows_evenly(rows: int) -> None:
    shapes = {"I0": (rows, 4), "I1": (32, 4)}
    program = parse(PRODUCT, {"p": rows, "k": 32, "c": 4}, shapes).with_constants(("I1",))
    start = TemplateSpace(program, this_machine(2)).start()
    tree = tree_of(program, divide_rows(program, start, 2))
    assert wrong_in_tree(tree, program) is None
    (loop,) = (node for node in tree.body if isinstance(node, Loop) and node.kind == "parallel")
    assert loop.axis == "p"
    # Each thread begins with as many parts, of which the last may be short.
    half = -(-rows // loop.step) // 2 * loop.step
    assert max(half, rows - half) <= 0.6 * rows


def test_what_has_no_rows_is_not_divided() -> None:
    program = parse("S[] += I0[c] * I1[c]", {"c": 4096}, {"I0": (4096,), "I1": (4096,)})
    start = TemplateSpace(program, this_machine(2)).start()
    assert divide_rows(program, start, 2) == start


@pytest.mark.parametrize(("alone_s", "is_divided"), [(9e-6, True), (1e-6, False)])
def test_kernel_leaves_the_division_of_the_others_only_for_a_clear_gain(
    tmp_path: Path, *, alone_s: float, is_divided: bool
) -> None:
    w = ModelWriter()
    x = w.add("Relu", w.conv(w.input("x", (1, 8, 24, 24)), 8, 8, 3))
    path = w.save(tmp_path / "m.onnx", w.conv(x, 8, 16, 1))
    target = this_machine(2)
    network = rewrite(laid_out(path), 1e-4, target)
    kernels = kernels_of(network)
    fused = [kernel for kernel in kernels if isinstance(kernel, FusedKernel)]
    texts = [kernel.program.text for kernel in fused]
    shared = {
        kernel.program.text: compile_schedule(
            kernel, divide_rows(kernel.program, TemplateSpace(kernel.program, target).start(), 2), target
        )
        for kernel in fused
    }
    assert all(map(division_of, shared.values()))
    # Only the last kernel is quicker on one core.
    alone = {text: replace(schedule, cores=1) for text, schedule in shared.items()}
    slow = dict.fromkeys(texts, 2e-5)
    times = [dict.fromkeys(texts, 1e-5), {**slow, texts[-1]: alone_s}]
    transfers = transfer_times(network, kernels, 2)
    assert 1e-6 < 1e-5 - transfers[texts[-1]] < 9e-6

    quickest, *others = combine_quickest([shared, alone], times, transfers)
    assert not quickest[texts[-1]].is_shared, "measured by itself it is quicker on one core"
    found = others[0] if is_divided else quickest
    assert found[texts[0]].is_shared
    assert found[texts[-1]].is_shared == is_divided
    assert is_divided or not others
