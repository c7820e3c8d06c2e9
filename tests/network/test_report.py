"""The report by layers: algorithms and layouts, and the nodes of ONNX Runtime that compute the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from network.compiled import small_model
from network_models import resnet18
from planish.levels.graph.source import read_model
from planish.network.compiler import compile_model
from planish.network.fusion import kernels_of
from planish.network.reader import read_network
from planish.network.report import PeerNode, match_layers, slower_matches
from planish.network.rewrites.pipeline import rewrite


def test_layers_are_matched_by_the_tensors_that_they_compute(tmp_path: Path) -> None:
    network, model = read_network(read_model(resnet18(tmp_path / "m.onnx", 32, 8), {}))
    kernels = kernels_of(rewrite(network, 1e-4))
    # One node for each of the model, none of which is fused.
    nodes = [PeerNode(node.name, node.op_type, list(node.output), 1.0) for node in model.graph.node]
    matches = match_layers(model, kernels, [2.0] * len(kernels), nodes)
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
    assert 0 < first["roofline"] < 2
    (match, *_) = found.manifest["matches"]
    assert match["peer_seconds"] > 0
    assert match["nodes"]
