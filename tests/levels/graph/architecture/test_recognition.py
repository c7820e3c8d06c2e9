"""Classes are seen in graphs of both exporters, and in what runtimes make of them; names say nothing."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from levels.graph.architecture.nets import CASES, EXPECTED, SMALL, Sketch, renamed, small_model
from planish.levels.graph.architecture import features, recognize
from planish.levels.graph.architecture.recognition import CLASSES


@pytest.mark.parametrize(("name", "exporter"), CASES)
def test_a_class_is_seen_whichever_exporter_wrote_the_file(name: str, exporter: str) -> None:
    assert recognize(small_model(name, exporter)).classes == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_names_say_nothing(name: str) -> None:
    model = small_model(name)
    assert features(renamed(model)) == features(model)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_counts_is_the_same_for_both_exporters(name: str) -> None:
    first, second = (features(small_model(name, e)).to_json() for e in ("torchscript", "dynamo-raw"))
    for written in ("operations", "parameters"):
        del first[written], second[written]
    assert first == second


@pytest.mark.parametrize(("name", "exporter"), CASES)
@pytest.mark.parametrize("level", ["ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"])
def test_a_class_is_seen_in_what_the_runtime_fused(
    name: str, exporter: str, level: str, tmp_path: Path
) -> None:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    settings.log_severity_level = 4
    settings.optimized_model_filepath = str(tmp_path / "fused.onnx")
    onnxruntime.InferenceSession(str(SMALL / f"{name}-small-{exporter}.onnx"), settings)
    assert recognize(onnx.load(tmp_path / "fused.onnx")).classes == EXPECTED[name]


def test_reasons_name_what_was_counted() -> None:
    found = recognize(small_model("ssd-resnet50"))
    assert str(found) == "SSD-like + ResNet-like"
    detector, backbone = found.matches
    assert detector.reasons[0].startswith("6 convolutions end at 3 scales")
    assert backbone.reasons == (
        "3 residual additions around ordinary convolutions",
        "57% of the convolutions lie in their branches",
    )


def test_a_network_of_no_class_is_other() -> None:
    sketch = Sketch()
    model = sketch.model(sketch.op("Relu", sketch.op("MatMul", "x", sketch.weight((4, 4)))))
    (match,) = recognize(model).matches
    assert (match.name, match.strength) == ("other", 0.0)
    assert "1 MatMul, 1 Relu" in match.reasons[0]


def test_a_network_that_is_nearly_of_a_class_tells_which() -> None:
    sketch, x = Sketch(), "x"
    for _ in range(8):
        x = sketch.conv(x, 4, 4)
    model = sketch.model(sketch.op("Add", x, sketch.conv(sketch.conv(x, 4, 4), 4, 4)))
    (match,) = recognize(model).matches
    assert match.name == "other"
    assert match.reasons[0] == "nearest is ResNet-like, with a strength of 0.25 where 0.5 is needed"


def test_an_empty_graph_is_other() -> None:
    found = recognize(Sketch().model())
    assert found.classes == ("other",)
    assert "no operations" in found.matches[0].reasons[0]


def test_every_reason_can_be_shown() -> None:
    seen = features(small_model("cnn")).to_json()
    shown = [indicator.text.format_map(seen) for kind in CLASSES.values() for indicator in kind.indicators]
    assert not [text for text in shown if "{" in text]
