"""The report by layers: algorithms and layouts, and the nodes of ONNX Runtime that compute the same."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import planish
from network.compiled import run_onnxruntime, small_model
from network_models import resnet18
from planish.core import Candidate, Failed, Measured
from planish.core.wording import multiple
from planish.levels.graph.source import read_model
from planish.levels.loops.backends import this_machine
from planish.measure import PairedSamples
from planish.network.compiler import compile_model
from planish.network.fusion import kernels_of
from planish.network.reader import read_network
from planish.network.report import Layer, PeerNode, describe_peers, join_strips, match_layers, slower_matches
from planish.network.rewrites.pipeline import rewrite, rewrite_layouts
from planish.network.timing import NetworkEvaluator, Runtime
from planish.network.torch_peer import compile_package, has_torch, load_package


def test_layers_are_matched_by_the_tensors_that_they_compute(tmp_path: Path) -> None:
    network, model = read_network(read_model(resnet18(tmp_path / "m.onnx", 32, 8), {}))
    kernels = kernels_of(rewrite(rewrite_layouts(network), 1e-4, this_machine(1)))
    # One node for each of the model, none of which is fused.
    nodes = [PeerNode(node.name, node.op_type, list(node.output), 1.0) for node in model.proto.graph.node]
    matches = match_layers(model.proto, kernels, [2.0] * len(kernels), nodes)
    assert [index for match in matches for index in match.layers] == list(range(len(kernels)))
    assert sum(match.peer_seconds for match in matches) == len(nodes)
    slow = slower_matches(matches)
    assert all(match.seconds > match.peer_seconds for match in slow)
    assert 0 < len(slow) < len(matches)


def test_manifest_has_each_layer_beside_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planish.network.compiler.COMPARISON_S", 0.5)
    found = compile_model(small_model(tmp_path / "m.onnx"), output=tmp_path / "net")
    first, *_ = found.manifest["layers"]
    assert (first["inputs"], first["shape"]) == ([(1, 3, 8, 8)], (1, 8, 8, 8))
    assert first["layout"] == "channels last"
    assert first["algorithm"] == "default schedule"
    assert first["seconds"] > 0
    assert first["roofline"] > 0
    (match, *_) = found.manifest["matches"]
    assert match["peer_seconds"] > 0
    assert match["nodes"]


def test_strips_of_a_layer_are_a_row() -> None:
    def layer(seconds: float, strip_of: str = "", gflops: float = 1.0) -> Layer:
        shapes = [(1, 8, 4, 4)], (1, 8, 4, 4)
        return Layer("Conv", *shapes, "channels last", "tiles", seconds, gflops, gflops / 10, strip_of)

    layers = [layer(1), layer(2, "y", 3.0), layer(4, "z"), layer(3, "y", 1.0), layer(4, "z"), layer(5)]
    found = join_strips(layers)
    assert list(found) == [(0,), (1, 3), (2, 4), (5,)]
    assert found[0,] == layers[0]
    both = found[1, 3]
    assert both.algorithm == "tiles, 2 strips"
    assert both.seconds == 5
    assert both.gflops == pytest.approx(9 / 5), "all operations in all the time"


@contextmanager
def untimed(stage: str) -> Generator[None]:
    """Measure no stage."""
    del stage
    yield


def test_peers_are_timed_on_the_same_input(tmp_path: Path) -> None:
    path, net = small_model(tmp_path / "m.onnx"), tmp_path / "net"
    planish.compile(path, output=net)
    np.savez(net / "feed.npz", np.ones((1, 3, 8, 8), np.float32))
    for name in ("model.onnx", "slim.onnx"):
        (net / name).write_bytes(path.read_bytes())
    evaluator = NetworkEvaluator(net)
    for runtime in ("planish", "onnxruntime", "onnxslim"):
        assert isinstance(evaluator.evaluate(Candidate((Runtime(runtime),)), untimed), Measured)
    (net / "slim.onnx").write_bytes(b"damaged")
    refused = NetworkEvaluator(net).evaluate(Candidate((Runtime("onnxslim"),)), untimed)
    assert isinstance(refused, Failed)
    assert refused.reason.startswith("ONNX Runtime after onnxslim refuses the model: ")


@pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")
def test_openvino_is_timed(tmp_path: Path) -> None:
    path, net = small_model(tmp_path / "m.onnx"), tmp_path / "net"
    planish.compile(path, output=net)
    np.savez(net / "feed.npz", np.ones((1, 3, 8, 8), np.float32))
    (net / "model.onnx").write_bytes(path.read_bytes())
    found = NetworkEvaluator(net).evaluate(Candidate((Runtime("openvino"),)), untimed)
    assert isinstance(found, Measured)


@pytest.mark.slow
@pytest.mark.skipif(not has_torch(), reason="torch or onnx2torch is not installed")
def test_pytorch_compiles_ahead_of_time(tmp_path: Path) -> None:
    path, net, package = small_model(tmp_path / "m.onnx"), tmp_path / "net", tmp_path / "torch.pt2"
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8), np.float32)
    np.savez(tmp_path / "feed.npz", x)
    assert not compile_package(path, tmp_path / "feed.npz", package, 1)
    (found,) = cast("list[Any]", load_package(package, [x], 1)())
    np.testing.assert_allclose(found.numpy(), run_onnxruntime(path, {"x": x})[0], rtol=1e-5, atol=1e-6)
    planish.compile(path, output=net)
    np.savez(net / "feed.npz", x)
    package.rename(net / package.name)
    evaluator = NetworkEvaluator(net)
    assert isinstance(evaluator.evaluate(Candidate((Runtime("torch"),)), untimed), Measured)


def test_peers_are_described_beside_the_library() -> None:
    def samples(name: str, time: float, rows: int = 3) -> PairedSamples:
        values = tuple(tuple(time * (1 + 0.001 * (row + i)) for i in range(3)) for row in range(rows))
        return PairedSamples(name, values, sum(values, ()), (), None, "undecided")

    sides = samples("onnxruntime", 3e-3), samples("planish", 2e-3), samples("openvino", 1e-3, 5)
    faster, missing = describe_peers([*sides, samples("onnxslim", 1e-3, 0)])
    assert faster.startswith("OpenVINO: 1.0")
    assert f" {multiple(2.0)} planish's speed" in faster
    assert faster.endswith("planish is slower")
    assert missing.startswith("ONNX Runtime after onnxslim: not compared")
