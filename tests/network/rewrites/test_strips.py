"""Chains of kernels that are computed strip by strip."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import examples
from network.compiled import assert_same, built_network, laid_out, small_model
from network_models import ModelWriter, mobilenet, resnet18
from planish.core import Cache
from planish.levels.graph.source import read_model
from planish.levels.loops.backends import this_machine
from planish.network.choices import choose_algorithms
from planish.network.fusion import kernels_of
from planish.network.ir import JOIN, PART, VIEW
from planish.network.library.files import write_library
from planish.network.library.runtime import CompiledNetwork
from planish.network.operators.winograd import list_allowed_tiles
from planish.network.reader import read_network
from planish.network.registry import OPERATORS
from planish.network.rewrites.pipeline import rewrite, rewrite_algorithms
from planish.network.rewrites.strips import find_chains
from planish.network.tuning import DefaultTimes
from planish.network.verification import TOLERANCE


def block(
    path: Path, size: tuple[int, int], window: int, stride: int, *,
    expands: bool, depthwise: bool, projects: bool, ends: bool,
) -> Path:  # fmt: skip
    """Write an inverted residual block, or one with a dense convolution, or a part, between two layers."""
    w, inner, wide = ModelWriter(), 8, 20
    x = w.add("Relu", w.conv(w.input("x", (1, 4, *size)), 4, inner, 1))
    y = w.swish(w.conv(x, inner, wide, 1)) if expands else x
    wide = wide if expands else inner
    y = w.conv(y, wide, wide, window, stride, wide if depthwise else 1)
    if projects:
        y = w.conv(w.swish(y), wide, inner, 1)
        y = w.add("Add", x, y) if stride == 1 else y
    if ends:
        # Rows of an image of one channel are in sequence in the network's own layout, too.
        return w.save(path, w.add("Sigmoid", w.conv(y, inner if projects else wide, 1, 3)))
    return w.save(path, w.add("GlobalAveragePool", y))


@pytest.mark.slow
@settings(max_examples=examples(8))
@given(
    size=st.tuples(st.integers(8, 21), st.integers(5, 21)),
    expands=st.booleans(),
    depthwise=st.booleans(),
    window=st.sampled_from([3, 5]),
    stride=st.integers(1, 2),
    projects=st.booleans(),
    ends=st.booleans(),
    rows=st.integers(2, 7),
    cores=st.integers(1, 2),
)
def test_strips_compute_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    size: tuple[int, int],
    expands: bool,
    depthwise: bool,
    window: int,
    stride: int,
    projects: bool,
    ends: bool,
    rows: int,
    cores: int,
) -> None:
    folder = tmp_path_factory.mktemp("net")
    kind = {"expands": expands, "depthwise": depthwise, "projects": projects, "ends": ends}
    path = block(folder / "m.onnx", size, window, stride, **kind)
    network = laid_out(path)
    tiles = {name: allowed[-1] for name, allowed in list_allowed_tiles(network, TOLERANCE).items()}
    chains = find_chains(network, tiles)
    chosen = {chain.output: max(1, rows // chain.step) * chain.step for chain in chains}
    made = rewrite_algorithms(network, tiles, chains, chosen)
    assert sum(node.operator == JOIN for node in made.nodes) == len(chains)
    write_library(built_network(made, cores), folder)
    assert_same(CompiledNetwork(folder), path)


def test_tuning_measures_strips(tmp_path: Path) -> None:
    path = mobilenet(tmp_path / "m.onnx", 32, [(6, 16, 1, 1)])
    network, target, said = laid_out(path), this_machine(1), list[str]()
    assert target.machine is not None
    machine = replace(target.machine, caches=(Cache(2, 1 << 16, 64),))
    found = choose_algorithms(network, TOLERANCE, DefaultTimes(replace(target, machine=machine)), said.append)
    strips = sum(node.operator == JOIN for node in found.nodes)
    assert f"{strips} of 1 chains of kernels are quicker by strips of rows" in said
    write_library(built_network(found, 1), tmp_path)
    assert_same(CompiledNetwork(tmp_path), path)


def test_estimates_decide_when_the_time_for_choices_is_over(tmp_path: Path) -> None:
    path = resnet18(tmp_path / "m.onnx", size=64, width=16)
    network, target, said = laid_out(path), this_machine(1), list[str]()
    found = choose_algorithms(network, TOLERANCE, DefaultTimes(target, -1), said.append)
    assert found.nodes == rewrite(network, TOLERANCE, target).nodes
    assert said[0].startswith("algorithms of convolutions are estimated")


def test_default_schedules_are_compiled_once(tmp_path: Path) -> None:
    network = read_network(read_model(small_model(tmp_path / "m.onnx"), {}))[0]
    times, kernels = DefaultTimes(this_machine(1)), kernels_of(network)
    first, again = times.schedules(kernels), times.schedules(kernels)
    assert first
    assert all(first[text] is again[text] for text in first)


def test_operators_that_compute_nothing_are_those_of_no_kernel() -> None:
    assert OPERATORS.keys().isdisjoint((VIEW, PART, JOIN))


@pytest.mark.parametrize(("size", "strips"), [(1 << 16, True), (1 << 23, False)])
def test_strips_are_taken_where_a_cache_does_not_hold_what_is_passed_on(
    tmp_path: Path, size: int, *, strips: bool
) -> None:
    path = mobilenet(tmp_path / "m.onnx", 64, [(1, 16, 1, 1), (6, 24, 2, 2)])
    network, target = laid_out(path), this_machine(1)
    assert target.machine is not None
    machine = replace(target.machine, caches=(Cache(2, size, 64),))
    found = rewrite(network, TOLERANCE, replace(target, machine=machine))
    assert any(node.operator == JOIN for node in found.nodes) == strips
