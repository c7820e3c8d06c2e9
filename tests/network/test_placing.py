"""Concat and Slice without copies: parts are written where the result has them, and read in their source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto

from held_out_networks import shufflenet
from network.compiled import assert_same, built_with, compiled, laid_out, operators, shared_library
from network_models import ModelWriter, densenet, unet
from planish.levels.graph.source import read_model
from planish.levels.loops.backends import this_machine
from planish.network.choices import choose_placements, slower_groups
from planish.network.fusion import FusedKernel
from planish.network.library.files import write_library
from planish.network.library.runtime import CompiledNetwork
from planish.network.placing import place_tensors, placement_groups, tensors_of
from planish.network.python_kernels.program import PythonKernel
from planish.network.reader import read_network
from planish.network.rewrites.pipeline import rewrite
from planish.network.tuning import DefaultTimes


def moves(layers: list[str]) -> list[str]:
    """List the kernels that only move elements."""
    return [each for each in layers if each in ("Concat", "CopyPart", "StridedSlice", "Join")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "copies"),
    [
        (partial(densenet, size=32, growth=8, blocks=(3, 2)), 0),
        (partial(unet, size=16, width=8, depth=2), 0),
        # Where the half that is not computed has several pixels, it is copied to the other one.
        (partial(shufflenet, size=32, channels=(8, 16, 32, 64, 32)), 3),
    ],
    ids=["densenet", "unet", "shufflenet"],
)
def test_networks_without_copies(tmp_path: Path, write: Callable[[Path], Path], copies: int) -> None:
    path = write(tmp_path / "m.onnx")
    found = compiled(path)
    assert len(moves(operators(found))) == copies
    assert_same(found.network, path)
    assert_same(shared_library(path, tmp_path / "net", 2), path)


@pytest.mark.slow
def test_parts_that_are_there_early_take_no_memory_for_the_others(tmp_path: Path) -> None:
    network = rewrite(laid_out(unet(tmp_path / "m.onnx", 64, 8, 3)), 1e-4, this_machine(1))
    placed, kernels = place_tensors(network)
    copied, others = place_tensors(network, apart=placed.placements)
    least = built_with(copied, others, 1).manifest["least_workspace_bytes"]
    built = built_with(placed, kernels, 1)
    assert built.manifest["workspace_bytes"] <= 1.1 * least
    assert any(place.base in network.producers for place in placed.placements.values()), "some are placed"


def split_and_joined(w: ModelWriter) -> tuple[str, ...]:
    """Write a block whose halves are joined again with what is computed of one."""
    x = w.conv(w.input("x", (1, 3, 8, 8)), 3, 16, 3)
    a, b = w.add("Split", x, w.whole(8, 8), axis=1, count=2)
    c = w.add("Relu", w.conv(b, 8, 8, 3))
    return (w.conv(w.add("Concat", a, b, c, axis=1), 24, 8, 1),)


def parts_of_features(w: ModelWriter) -> tuple[str, ...]:
    """Write a product whose columns are read by others, one of them through a view."""
    x = w.dense(w.input("x", (2, 6, 8)), 8, 24)
    q, k, v = w.add("Split", x, w.whole(8, 8, 8), axis=-1, count=3)
    heads = w.add("Transpose", w.add("Reshape", q, w.whole(2, 6, 2, 4)), perm=[0, 2, 1, 3])
    return heads, w.add("MatMul", k, w.add("Transpose", v, perm=[0, 2, 1])), w.add("Relu", k)


def parts_that_need_copies(w: ModelWriter) -> tuple[str, ...]:
    """Write Concat of an input, an output, a constant, a tensor twice, and one that has a place already."""
    x = w.input("x", (1, 4, 6, 6))
    y, z = w.conv(x, 4, 4, 3), w.add("Tanh", w.conv(x, 4, 4, 1))
    one = w.add("Concat", x, y, z, z, w.weight(1, 2, 6, 6), axis=1)
    other = w.add("Concat", z, w.add("Relu", z), axis=1)
    return y, w.conv(one, 18, 3, 1), w.add("ReduceMean", other, axes=[2, 3])


def parts_of_several_images(w: ModelWriter) -> tuple[str, ...]:
    """Write Concat and Slice of row-major tensors, whose rows lie apart or in pieces."""
    x = w.input("x", (2, 4, 3, 5))
    y = w.add("Concat", w.add("Relu", x), w.add("Tanh", x), axis=1)
    z = w.add("Concat", w.add("Exp", x), w.add("Abs", x), axis=3)
    first = w.add("Slice", w.add("Neg", x), w.whole(1), w.whole(3), w.whole(3))
    return w.add("Softmax", y), w.add("Softmax", z), w.add("Sigmoid", first)


def parts_of_parts(w: ModelWriter) -> tuple[str, ...]:
    """Write Concat of Concat along the same and another axis, and of views."""
    x = w.input("x", (3, 8))
    one = w.add("Concat", w.add("Relu", x), w.add("Tanh", x), axis=1)
    two = w.add("Concat", one, w.add("Abs", x), axis=1)
    three = w.add("Concat", w.add("Reshape", two, w.whole(6, 12)), w.weight(1, 12), axis=0)
    four = w.add("Concat", w.add("Reshape", w.add("Exp", x), w.whole(6, 4)), w.weight(6, 2), axis=1)
    return w.add("Softmax", one), w.add("Softmax", two), w.add("Neg", three), w.add("Neg", four)


def parts_that_are_looked_up(w: ModelWriter) -> tuple[str, ...]:
    """Write Gather, and an operator that is a Python kernel, of parts."""
    x, ids = w.input("x", (4, 8)), w.input("ids", (3,), TensorProto.INT64)
    whole = w.add("Concat", w.add("Relu", x), w.add("Sin", x), axis=1)
    a, b = w.add("Split", w.add("Tanh", whole), w.whole(4, 12), axis=1, count=2)
    return w.add("Gather", a, ids, axis=0), w.add("Cos", b), w.add("Neg", whole)


def two_blocks(w: ModelWriter) -> tuple[str, ...]:
    """Write two Concat; no kernel touches both."""
    x = w.input("x", (4, 8))
    for _ in range(2):
        x = w.add("Concat", w.add("Relu", x), w.add("Tanh", x), axis=1)
        x = w.add("Softmax", w.add("Softmax", x))
    return (x,)


def test_placements_are_chosen_by_measured_times(tmp_path: Path) -> None:
    w = ModelWriter()
    network = read_network(read_model(w.save(tmp_path / "m.onnx", *two_blocks(w)), {}))[0]
    placed, kernels = place_tensors(network)
    groups = placement_groups(placed, kernels)
    first, second = [node.output for node in network.nodes if node.operator == "Concat"]
    assert groups == [{first}, {second}]
    _, copying = place_tensors(network, apart=placed.placements)

    def times(kernels: Sequence[FusedKernel | PythonKernel], of_second: float) -> list[float]:
        """Return 1 s for the kernels of the first Concat, and as many seconds for those of the second."""
        return [of_second if second in (placed.memory(n)[0] for n in tensors_of(k)) else 1.0 for k in kernels]

    # Copies take a kernel more of 1 s in the first.
    within, copied = (kernels, times(kernels, 3.0)), (copying, times(copying, 2.0))
    assert slower_groups(placed, groups, within, copied) == [{second}]
    found, made = choose_placements(network, DefaultTimes(this_machine(1)), [].append)
    write_library(built_with(found, made, 1), tmp_path)
    assert_same(CompiledNetwork(tmp_path), tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("build", "most"),
    [
        (split_and_joined, 0), (parts_of_features, 0), (parts_that_need_copies, 9),
        (parts_of_several_images, 9), (parts_of_parts, 9), (parts_that_are_looked_up, 9),
    ],
)  # fmt: skip
@pytest.mark.slow(after=3)
def test_parts(tmp_path: Path, build: Callable[[ModelWriter], Any], most: int) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", *build(w))
    for fuse in (True, False):
        found = compiled(path, fuse=fuse)
        assert_same(found.network, path)
    assert len(moves(operators(compiled(path)))) <= most
