"""What is counted, on graphs that are small enough to count by hand."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from levels.graph.architecture.nets import Sketch, small_model
from planish.levels.graph.architecture import features
from planish.levels.graph.model_protos import DataFlowGraph


@given(st.lists(st.sampled_from(["plain", "depthwise", "grouped", "1x1"]), min_size=1, max_size=8))
def test_convolutions_are_counted_by_kind(kinds: list[str]) -> None:
    sketch, x = Sketch(), "x"
    for kind in kinds:
        group = {"depthwise": 8, "grouped": 2}.get(kind, 1)
        x = sketch.conv(x, 8, 8, kernel=1 if kind == "1x1" else 3, group=group)
    found = features(sketch.model(x))
    counts = found.convolutions, found.depthwise, found.pointwise
    assert counts == (len(kinds), kinds.count("depthwise"), kinds.count("1x1"))
    assert found.residuals == found.joints == found.skips == 0


@given(st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_residual_sums_are_counted_with_their_branches(blocks: int, depth: int, depthwise: bool) -> None:
    sketch = Sketch()
    x = sketch.conv("x", 3, 8)
    for _ in range(blocks):
        branch = x
        for _ in range(depth):
            branch = sketch.op("Relu", sketch.conv(branch, 8, 8, group=8 if depthwise else 1))
        x = sketch.op("Add", branch, x)
    found = features(sketch.model(x))
    assert (found.residuals, found.inverted_residuals) == ((0, blocks) if depthwise else (blocks, 0))
    assert found.residual_convolutions == (0 if depthwise else blocks * depth)


def test_the_declared_shape_of_a_constant_counts_where_no_extent_is_open() -> None:
    sketch = Sketch()
    model = sketch.model(sketch.op("Relu", sketch.op("MatMul", "x", sketch.weight((0, 4)))))
    (weight,) = (tensor.name for tensor in model.graph.initializer)
    for declared, shape in (((0, 4), (0, 4)), (("n", 4), (0, 4)), ((-1, 4), (0, 4)), ((3, 4), (3, 4))):
        del model.graph.value_info[:]
        model.graph.value_info.append(helper.make_tensor_value_info(weight, TensorProto.FLOAT, declared))
        assert DataFlowGraph(model).shape(weight) == shape


def test_a_sum_of_two_inputs_and_a_bias_are_no_residuals() -> None:
    sketch = Sketch()
    biased = sketch.op("Add", sketch.conv("x", 3, 8), sketch.weight((8, 1, 1)))
    model = sketch.model(sketch.op("Add", biased, sketch.conv("y", 3, 8)), inputs=("x", "y"))
    assert features(model).residuals == 0


def test_a_sum_of_a_laterally_joined_pyramid_is_no_residual() -> None:
    sketch = Sketch()
    x = sketch.conv("x", 3, 8)
    low = sketch.op("Resize", sketch.conv(x, 8, 8, stride=2), "", sketch.weight((4,)))
    assert features(sketch.model(sketch.op("Add", sketch.conv(x, 8, 8), low))).residuals == 0


@pytest.mark.parametrize("scales", [1, 2, 3, 4])
def test_heads_are_counted_by_the_scale_that_they_look_at(scales: int) -> None:
    sketch, x = Sketch(), "x"
    ends: list[str] = []
    for index in range(scales):
        x = sketch.conv(x, 8 if index else 3, 8, stride=2)
        ends += [sketch.op("Sigmoid", sketch.conv(x, 8, n)) for n in (4, 3)]
    found = features(sketch.model(*ends))
    assert (found.end_convolutions, found.end_scales) == (2 * scales, scales)


def test_maps_cut_at_their_borders_are_scales_too() -> None:
    sketch, x = Sketch(), "x"
    ends: list[str] = []
    for _ in range(3):
        x = sketch.op("Conv", x, sketch.weight((3, 3, 3, 3)), kernel_shape=[3, 3])
        ends.append(sketch.conv(x, 3, 4))
    assert features(sketch.model(*ends)).end_scales == 3


@pytest.mark.parametrize("up", ["Resize", "ConvTranspose"])
def test_skips_join_what_was_upsampled(up: str) -> None:
    sketch = Sketch()
    x = sketch.conv("x", 3, 8)
    grown = sketch.op(up, sketch.conv(x, 8, 8, stride=2), sketch.weight((8, 8, 2, 2)))
    joined = sketch.conv(sketch.op("Concat", x, grown, axis=1), 16, 8)
    beside = sketch.conv(sketch.op("Concat", joined, sketch.conv(joined, 8, 8), axis=1), 16, 8)
    found = features(sketch.model(beside))
    assert (found.skips, found.joints) == (1, 1)


def _attention(sketch: Sketch, mask: str = "", x: str = "x") -> str:
    q, k, v = (sketch.op("MatMul", x, sketch.weight((8, 8))) for _ in range(3))
    scores = sketch.op("MatMul", q, sketch.op("Transpose", k, perm=[0, 2, 1]))
    weights = sketch.op("Softmax", sketch.op("Add", scores, mask) if mask else scores)
    return sketch.op("MatMul", weights, v)


def _ranks(sketch: Sketch) -> str:
    indices = sketch.weight((5,), np.arange(5))
    rows, columns = (sketch.op("Unsqueeze", indices, sketch.weight((1,), np.array([n]))) for n in (0, 1))
    late = sketch.op("Greater", rows, columns)
    return sketch.op("Where", late, sketch.weight((1,), np.array([-1e9], np.float32)), sketch.weight((1,)))


def _sized(sketch: Sketch) -> str:
    length = sketch.op("Gather", sketch.op("Shape", "x"), sketch.weight((1,), np.array([1])))
    full = sketch.op("ConstantOfShape", sketch.op("Concat", length, length, axis=0))
    return sketch.op("Trilu", full, upper=1)


def _triangle(sketch: Sketch) -> str:
    return sketch.weight((), np.triu(np.full((5, 5), -1e9, np.float32), 1)[None])


def _square(sketch: Sketch) -> str:
    return sketch.weight((1, 5, 5))


def _given(_: Sketch) -> str:
    return "mask"


@pytest.mark.parametrize(
    ("mask", "causal"), [(_triangle, 1), (_ranks, 1), (_sized, 1), (_square, 0), (_given, 0)]
)
def test_causal_masks_are_seen_however_they_are_written(mask: Callable[[Sketch], str], causal: int) -> None:
    sketch = Sketch()
    found = features(sketch.model(_attention(sketch, mask(sketch)), inputs=("x", "mask")))
    assert (found.attentions, found.causal) == (1, causal)


@pytest.mark.parametrize("causal", [0, 1])
def test_fused_attention_says_whether_it_is_causal(causal: int) -> None:
    sketch = Sketch()
    fused = sketch.op("Attention", "x", sketch.weight((8, 24)), domain="com.microsoft", unidirectional=causal)
    found = features(sketch.model(fused))
    assert (found.attentions, found.causal) == (1, causal)


def test_a_classifier_that_ends_in_a_softmax_attends_to_nothing() -> None:
    sketch = Sketch()
    scores = sketch.op("MatMul", "x", sketch.weight((8, 3)))
    model = sketch.model(sketch.op("MatMul", sketch.op("Softmax", scores), sketch.weight((3, 2))))
    assert features(model).attentions == 0


def test_layer_normalization_is_counted_in_its_parts() -> None:
    sketch = Sketch()
    centered = sketch.op("Sub", "x", sketch.op("ReduceMean", "x"))
    squares = sketch.op("ReduceMean", sketch.op("Pow", centered, sketch.weight((1,))))
    root = sketch.op("Sqrt", sketch.op("Add", squares, sketch.weight((1,))))
    assert features(sketch.model(sketch.op("Div", centered, root))).norms == 1


def test_lookups_of_what_is_given_are_embeddings_and_those_of_places_are_not() -> None:
    sketch = Sketch()
    table = sketch.weight((9, 4))
    indices = sketch.op("Gather", table, sketch.weight((3,), np.arange(3)))
    words = sketch.op("Gather", table, sketch.op("Cast", "x", to=TensorProto.INT64))
    assert features(sketch.model(sketch.op("Add", words, indices))).embeddings == 1


def test_the_body_of_a_loop_is_looked_at() -> None:
    product = helper.make_node("MatMul", ["s", "x"], ["t"])
    copy = helper.make_node("Identity", ["c"], ["d"])
    names = [("i", TensorProto.INT64), ("c", TensorProto.BOOL), ("s", TensorProto.FLOAT)]
    given = [helper.make_tensor_value_info(name, kind, None) for name, kind in names]
    made = [helper.make_tensor_value_info(n, k, None) for n, k in (("d", TensorProto.BOOL), ("t", 1))]
    sketch = Sketch()
    body = helper.make_graph([product, copy], "body", given, made)
    found = features(sketch.model(sketch.op("Loop", sketch.weight((1,)), "", "x", body=body)))
    assert found.recurrent == 1
    assert found.operations["MatMul"] == 1


def test_functions_are_inlined() -> None:
    sketch = Sketch()
    model = sketch.model(sketch.op("Block", "x", domain="own"))
    node = helper.make_node("Softmax", ["a"], ["b"])
    versions = [helper.make_opsetid("", 20)]
    del model.opset_import[:]
    model.opset_import.extend([*versions, helper.make_opsetid("own", 1)])
    model.functions.append(helper.make_function("own", "Block", ["a"], ["b"], [node], versions))
    assert features(model).operations == {"Softmax": 1}


def test_weights_that_lie_in_a_missing_file_are_not_needed() -> None:
    model = small_model("gpt")
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
    assert features(model).attentions == 2


def test_the_ways_to_two_values_part_at_the_last_common_one() -> None:
    sketch = Sketch()
    common = sketch.op("Relu", sketch.op("Abs", "x"))
    first, second = sketch.op("Exp", sketch.op("Neg", common)), sketch.op("Tanh", common)
    paths = DataFlowGraph(sketch.model(first, second)).nearest_common_ancestor(first, second)
    assert paths is not None
    assert [[node.op for node in path] for path in paths] == [["Exp", "Neg"], ["Tanh"]]


def test_values_of_separate_inputs_do_not_meet() -> None:
    sketch = Sketch()
    first, second = sketch.op("Abs", "x"), sketch.op("Abs", "y")
    assert (
        DataFlowGraph(sketch.model(first, second, inputs=("x", "y"))).nearest_common_ancestor(first, second)
        is None
    )


def test_shapes_are_no_data() -> None:
    sketch = Sketch()
    length = sketch.op("Shape", "x")
    graph = DataFlowGraph(sketch.model(sketch.op("Reshape", "x", length)))
    shape, reshape = graph.nodes
    assert (shape.data, reshape.data) == (("x",), ("x",))
    assert not list(graph.after(shape))


def test_features_are_json() -> None:
    found = features(small_model("unet")).to_json()
    assert json.loads(json.dumps(found)) == found
