"""Winograd's algorithm: its matrices, its transforms, and when it is taken."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from network.compiled import assert_same, compiled, laid_out, operators
from network_models import ModelWriter
from planish.levels.graph.source import read_model
from planish.levels.loops.backends import cross_target, this_machine
from planish.network.choices import choose_algorithms
from planish.network.compiler import compile_model
from planish.network.operators import winograd
from planish.network.reader import read_network
from planish.network.rewrites.pipeline import measure_weight_cost, rewrite_layouts
from planish.network.tuning import DefaultTimes


@pytest.mark.parametrize("tile", winograd.POINTS)
def test_matrices_are_exact(tile: int) -> None:
    a, g, b = winograd.matrices(tile)
    # The algorithm is bilinear: on unit vectors, it has the convolution's coefficients.
    for i, k, n in product(range(tile), range(3), range(tile + 2)):
        found = sum((a[i][p] * g[p][k] * b[p][n] for p in range(tile + 2)), Fraction(0))
        assert found == (n == i + k)
    # What transforms multiply by is the same in floats.
    assert all(Fraction(float(x)) == x for rows in (a, b) for row in rows for x in row)


@pytest.mark.slow
@settings(max_examples=examples(4), deadline=None)
@given(
    tile=st.sampled_from(sorted(winograd.POINTS)),
    batch=st.integers(1, 2),
    sizes=st.tuples(*[st.integers(9, 17)] * 2),
    channels=st.tuples(*[st.sampled_from([2, 5, 16, 18])] * 2),
    pads=st.tuples(*[st.integers(0, 2)] * 4),
)
def test_every_tile_computes_the_convolution(
    tmp_path_factory: pytest.TempPathFactory,
    tile: int,
    batch: int,
    sizes: tuple[int, int],
    channels: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:
    w = ModelWriter()
    x = w.input("x", (batch, 3, *sizes))
    x = w.add("Conv", x, w.weight(channels[0], 3, 1, 1))
    y = w.add("Conv", x, w.weight(channels[1], channels[0], 3, 3), w.weight(channels[1]), pads=list(pads))
    # A value that is read twice, and a sum of two results.
    y = w.add("Mul", y, w.add("Sigmoid", y))
    y = w.add("Add", y, w.conv(x, channels[0], channels[1], 3)) if pads == (1, 1, 1, 1) else y
    path = w.save(tmp_path_factory.mktemp("net") / "m.onnx", w.add("GlobalAveragePool", y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd, "POINTS", {tile: winograd.POINTS[tile]})
        patch.setattr(winograd, "TRANSFORM_COST", -1e9)
        found = compiled(path)
    assert "WinogradInput" in operators(found)
    assert_same(found.network, path)


def _convolution(path: Path) -> Path:
    w = ModelWriter()
    x = w.add("Relu", w.conv(w.input("x", (1, 3, 24, 24)), 3, 32, 3))
    x = w.add("Relu", w.conv(x, 32, 32, 3))
    return w.save(path, w.add("GlobalAveragePool", x))


def test_it_is_taken_where_it_is_faster(tmp_path: Path) -> None:
    found = compiled(_convolution(tmp_path / "m.onnx"))
    assert operators(found) == [
        "Conv+Relu", "WinogradInput", "MatMul", "WinogradOutput+Relu", "GlobalAveragePool"
    ]  # fmt: skip


def test_it_is_not_taken_where_its_error_is_larger_than_the_tolerance_allows(tmp_path: Path) -> None:
    found = compiled(_convolution(tmp_path / "m.onnx"), tolerance=2e-6)
    assert operators(found) == ["Conv+Relu", "Conv+Relu", "GlobalAveragePool"]


def test_larger_tiles_are_for_weights_that_are_read_quickly(tmp_path: Path) -> None:
    w = ModelWriter()
    x = w.add("Relu", w.conv(w.input("x", (1, 128, 14, 14)), 128, 128, 3))
    path = w.save(tmp_path / "m.onnx", w.add("GlobalAveragePool", w.conv(x, 128, 128, 3)))
    network = rewrite_layouts(read_network(read_model(path, {}))[0])
    tiles = [winograd.expect_tiles(network, 1e-4, cost) for cost in (0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)]
    found = [max(each.values(), default=0) for each in tiles]
    assert found == sorted(found, reverse=True)
    assert (found[0], found[-1]) == (4, 0)


def test_the_cost_of_weights_is_measured_on_this_machine_alone() -> None:
    assert measure_weight_cost(cross_target("aarch64", 1)) == winograd.WEIGHT_COST
    cost = measure_weight_cost(this_machine(1))
    # Measured once: the same model gives the same library in a process.
    assert cost == measure_weight_cost(this_machine(1)) > 1


def test_its_error_grows_with_the_tile() -> None:
    weights = np.random.default_rng(0).standard_normal((16, 64, 3, 3)).astype(np.float32)
    errors = [winograd.error_of(weights, tile) for tile in sorted(winograd.POINTS)]
    assert errors == sorted(errors)
    assert 1e-8 < errors[0] < errors[-1] < 1e-4


@pytest.mark.parametrize("others", ["0 1 -1 1/2 -2", "0 1 -1 2 -2", "0 1 -1 1/2 -1/2"])
def test_its_points_have_a_smaller_error_than_others(others: str) -> None:
    draw = np.random.default_rng(0)
    x, weights = draw.standard_normal((5000, 6)), draw.standard_normal((5000, 3))
    x, weights = x.astype(np.float32), weights.astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), 3, axis=1)
    right = np.einsum("nik,nk->ni", windows, weights.astype(np.float64))
    errors = list[float]()
    for points in (winograd.POINTS[4], tuple(map(Fraction, others.split()))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(winograd, "POINTS", {4: points})
            a, g, b = (np.array(rows, np.float64) for rows in winograd.matrices.__wrapped__(4))
        transformed = (weights.astype(np.float64) @ g.T).astype(np.float32)
        found = (transformed * (x @ b.T.astype(np.float32))) @ a.T.astype(np.float32)
        errors.append(float(np.linalg.norm(found - right)))
    assert errors[0] < 0.8 * errors[1]


def test_transforms_share_sums_and_differences() -> None:
    # The transform of an input has 20 operations for each of 12 rows and columns, of which products that are
    # added count as two; without sharing there would be more.
    geometry = winograd.Geometry(1, 4, 4, 4)
    whole = winograd.input_transform_tree(geometry, (6, 6, 16), (0, 0), ("I", "O"))
    plain = sum(2 * sum(c != 0 for c in row) - 1 for row in winograd.matrices(4)[2])
    assert whole.operations < 16 * 12 * plain
    assert replace(geometry, tile=2).count == 4


@pytest.mark.slow
def test_tuning_measures_which_algorithm_is_the_quickest(tmp_path: Path) -> None:
    path, said = _convolution(tmp_path / "m.onnx"), list[str]()
    network = laid_out(path)
    chosen = choose_algorithms(network, 1e-4, DefaultTimes(this_machine(1)), said.append)
    count = sum(node.operator == "WinogradInput" for node in chosen.nodes)
    assert f"{count} of 1 convolutions of 3x3 are quicker by Winograd's algorithm" in said
    found = compile_model(path, output=None, measures=False, seconds=1, store=tmp_path / "s.db")
    assert len(operators(found)) in (3, 5)
    assert_same(found.network, path)


@pytest.mark.parametrize("window", [3, 5, 7])
def test_matrices_of_other_windows_are_exact(window: int) -> None:
    for tile in winograd.covered_tiles([window]):
        a, g, b = winograd.matrices(tile, window)
        for i, k, n in product(range(tile), range(window), range(tile + window - 1)):
            found = sum((a[i][p] * g[p][k] * b[p][n] for p in range(tile + window - 1)), Fraction(0))
            assert found == (n == i + k)


@pytest.mark.parametrize("window", [3, 5, 7])
def test_convolutions_of_sequences(tmp_path: Path, window: int) -> None:
    w = ModelWriter()
    x = w.add("Transpose", w.dense(w.input("x", (2, 100, 24)), 24, 32), perm=[0, 2, 1])
    for _ in range(2):
        weights = w.weight(32, 32, window), w.weight(32)
        x = w.gelu(w.add("Conv", x, *weights, pads=[window // 2, window // 2 - 1]))
    path = w.save(tmp_path / "m.onnx", w.layer_norm(w.add("Transpose", x, perm=[0, 2, 1]), 32))
    found = compiled(path)
    layers = operators(found)
    assert sum(each == "WinogradInput" for each in layers) == 2
    # Features are last in memory throughout.
    assert not any(each.startswith(("Reorder", "Transpose")) for each in layers)
    assert_same(found.network, path)
