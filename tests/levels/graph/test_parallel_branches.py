"""Joining convolutions and products that read the same value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from levels.graph.models import constant, model, weight
from planish.levels.graph.model_protos import node_counts
from planish.levels.graph.rewriting import apply_pass

CONV, DENSE = "planish.combine_parallel_conv", "planish.combine_parallel_dense"


def answers(made: onnx.ModelProto, shape: Sequence[int]) -> list[Any]:
    ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])  # it takes the model
    feed = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
    return ReferenceEvaluator(made).run(None, {"x": feed})  # type: ignore[return-value]


def assert_same(made: onnx.ModelProto, other: onnx.ModelProto, shape: Sequence[int]) -> None:
    for one, two in zip(answers(made, shape), answers(other, shape), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)


def convs(branches: Sequence[dict[str, Any]], opset: int = 17, after: str = "") -> onnx.ModelProto:
    """Make convolutions of one value, each with its channels, its bias and its attributes."""
    nodes, weights, outputs = list[onnx.NodeProto](), list[onnx.TensorProto](), list[str]()
    for place, branch in enumerate(branches):
        wanted = dict(branch)
        channels, bias, group = wanted.pop("channels"), wanted.pop("bias", False), wanted.get("group", 1)
        kernel = wanted.pop("kernel", 3)
        names = ["x", f"w{place}", *([f"b{place}"] if bias else [])]
        weights += [weight(f"w{place}", channels, 4 // group, kernel, kernel)]
        weights += [weight(f"b{place}", channels)] if bias else []
        nodes.append(helper.make_node("Conv", names, [f"c{place}"], **wanted))
        nodes += [helper.make_node(after, [f"c{place}"], [f"r{place}"])] if after else []
        outputs.append(f"{'r' if after else 'c'}{place}")
    return model(nodes, weights, SHAPE, outputs=outputs, opset=opset)


SHAPE = (2, 4, 6, 6)
KINDS = st.fixed_dictionaries(
    {
        "channels": st.sampled_from([2, 4]),
        "bias": st.booleans(),
        "kernel": st.sampled_from([1, 3]),
        "strides": st.sampled_from([[1, 1], [2, 2]]),
        "pads": st.sampled_from([[0, 0, 0, 0], [1, 1, 1, 1]]),
        "group": st.sampled_from([1, 1, 2]),
    }
)


@settings(max_examples=40, deadline=None)
@given(st.lists(KINDS, min_size=2, max_size=4), st.sampled_from(["", "Relu", "Sigmoid"]))
def test_joined_convolutions_answer_the_same(branches: list[dict[str, Any]], after: str) -> None:
    before = convs(branches, after=after)
    made = apply_pass(before, CONV)
    assert_same(made, before, SHAPE)
    alike = [repr(sorted((b | {"channels": 0}).items())) for b in branches if b["group"] == 1]
    apart = len(branches) - len(alike) + len(set(alike))
    assert node_counts(made)["Conv"] == apart


@pytest.mark.parametrize(
    "other",
    [
        {"strides": [2, 2]},
        {"pads": [1, 1, 1, 1]},
        {"dilations": [2, 2]},
        {"kernel": 1},
        {"bias": True},
        {"group": 2},
    ],
)
def test_convolutions_that_read_otherwise_stay_apart(other: dict[str, Any]) -> None:
    before = convs([{"channels": 4}, {"channels": 4} | other])
    assert apply_pass(before, CONV) is before


def test_what_follows_each_convolution_is_computed_once() -> None:
    made = apply_pass(convs([{"channels": 2}, {"channels": 4}], after="Relu"), CONV)
    assert [node.op_type for node in made.graph.node] == ["Conv", "Relu", "Split"]
    assert {tensor.name for tensor in made.graph.initializer}.isdisjoint({"w0", "w1"})


@pytest.mark.parametrize("opset", [9, 12, 13, 18])
def test_splits_are_written_as_the_opset_has_them(opset: int) -> None:
    before = convs([{"channels": 2}, {"channels": 4}], opset)
    made = apply_pass(before, CONV)
    assert node_counts(made) == {"Conv": 1, "Split": 1}
    assert_same(made, before, SHAPE)


def test_weights_that_a_caller_may_give_or_that_are_quantised_stay() -> None:
    given_ = convs([{"channels": 2}, {"channels": 4}])
    given_.graph.input.append(helper.make_tensor_value_info("w1", TensorProto.FLOAT, [4, 4, 3, 3]))
    assert apply_pass(given_, CONV) is given_
    quantised = convs([{"channels": 2}, {"channels": 4}])
    scale = constant("s", np.array(0.1, np.float32))
    quantised.graph.initializer.extend([scale, constant("q", np.ones((4, 4, 3, 3), np.int8))])
    quantised.graph.node[1].input[1] = "d"
    quantised.graph.node.insert(0, helper.make_node("DequantizeLinear", ["q", "s"], ["d"]))
    assert apply_pass(quantised, CONV) is quantised


DENSES = st.tuples(st.sampled_from([1, 3, 5]), st.sampled_from(["product", "biased", "gemm", "gemm biased"]))


def dense(layers: Sequence[tuple[int, str]], shape: Sequence[int]) -> onnx.ModelProto:
    """Make dense layers of one value, each of its width and kind."""
    nodes, weights = list[onnx.NodeProto](), list[onnx.TensorProto]()
    for place, (width, kind) in enumerate(layers):
        weights += [weight(f"w{place}", 4, width), weight(f"b{place}", width)]
        if kind.startswith("gemm"):
            names = ["x", f"w{place}", *([f"b{place}"] if "biased" in kind else [])]
            nodes.append(helper.make_node("Gemm", names, [f"y{place}"], alpha=0.5))
        else:
            biased = kind == "biased"
            nodes.append(
                helper.make_node("MatMul", ["x", f"w{place}"], [f"m{place}" if biased else f"y{place}"])
            )
            nodes += [helper.make_node("Add", [f"b{place}", f"m{place}"], [f"y{place}"])] if biased else []
    return model(nodes, weights, shape, outputs=[f"y{place}" for place in range(len(layers))])


@settings(max_examples=40, deadline=None)
@given(st.lists(DENSES, min_size=2, max_size=4))
def test_joined_products_answer_the_same(layers: list[tuple[int, str]]) -> None:
    before = dense(layers, (3, 4))
    made = apply_pass(before, DENSE)
    assert_same(made, before, (3, 4))
    kinds = {"matmul" if kind in ("product", "biased") else kind for _, kind in layers}
    counts = node_counts(made)
    assert counts.get("MatMul", 0) + counts.get("Gemm", 0) == len(kinds)


def test_queries_keys_and_values_become_one_product_with_one_bias() -> None:
    before = dense([(5, "biased")] * 3, (2, 3, 4))
    made = apply_pass(before, DENSE)
    assert node_counts(made) == {"MatMul": 1, "Add": 1, "Split": 1}
    assert_same(made, before, (2, 3, 4))


@pytest.mark.parametrize("deep", [False, True])
def test_a_value_that_a_branch_reads_stays_one_to_it(deep: bool) -> None:
    one, other = (_branch(name, deep=deep) for name in ("m0", "m1"))
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["m0"]),
        helper.make_node("MatMul", ["x", "w1"], ["m1"]),
        helper.make_node("If", ["flag"], ["i"], then_branch=one, else_branch=other),
        helper.make_node("Relu", ["m0"], ["r0"]),
        helper.make_node("Relu", ["m1"], ["r1"]),
    ]
    weights = [weight("w0", 4, 2), weight("w1", 4, 2), constant("flag", np.array(True))]
    before = model(nodes, weights, (3, 4), outputs=["i", "r0", "r1"])
    made = apply_pass(before, DENSE)
    assert node_counts(made)["MatMul"] == 1
    assert node_counts(made)["Relu"] == 2
    assert_same(made, before, (3, 4))


def _branch(name: str, *, deep: bool = False, out: str = "o") -> onnx.GraphProto:
    """Make a branch that reads a value, or one whose own branches do."""
    found = helper.make_tensor_value_info(out, TensorProto.FLOAT, None)
    node = helper.make_node("Abs", [name], [out])
    if deep:
        inner = _branch(name, out="p")
        node = helper.make_node("If", ["flag"], [out], then_branch=inner, else_branch=inner)
    return helper.make_graph([node], "branch", [], [found])
