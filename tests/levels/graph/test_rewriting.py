"""Application of rewriting passes, equality of models, and joining of parallel branches."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnxscript.rewriter.rules import common

from amounts import examples
from levels.graph.models import constant, convolutions, model, one_node, weight, write
from planish.levels.graph.model_cache import Rewriter, final_cache_of, model_cache_of
from planish.levels.graph.model_protos import identity, node_counts
from planish.levels.graph.passes import EXACT, passes, passes_of_kind
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.rewriting import RewriteError, apply_pass, rewrite
from planish.levels.graph.source import read_model
from planish.sandbox.shared_cache import shared_cache

REWRITES = [each.name for each in passes_of_kind(*EXACT)]


@pytest.fixture
def program(tmp_path: Path) -> GraphProgram:
    return read_model(write(convolutions(), tmp_path / "net.onnx"), {})


def outputs(made: onnx.ModelProto) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
    found = session.run(None, {"x": feed})[0]
    assert isinstance(found, np.ndarray)
    return found


def test_the_rules_of_onnxscript_are_all_in_the_catalogue() -> None:
    known = {name.removeprefix("onnxscript.") for name in passes()}
    rules = {name.removesuffix("_rules").removesuffix("_rule") for name in common.__all__}
    assert rules <= known


@pytest.mark.parametrize("name", REWRITES)
def test_every_pass_keeps_what_a_model_computes(name: str) -> None:
    before = convolutions()
    content = before.SerializeToString()
    after = apply_pass(before, name)
    np.testing.assert_allclose(outputs(after), outputs(before), rtol=1e-4, atol=1e-5)
    assert before.SerializeToString() == content, "the model that was given has changed"


def test_a_batch_normalization_is_folded_away() -> None:
    after = rewrite(convolutions(), ["onnxscript.fuse_batchnorm_into_conv", "onnxscript.eliminate_identity"])
    assert not {"BatchNormalization", "Identity"} & node_counts(after).keys()
    assert node_counts(after)["Conv"] == 2


def test_passes_that_change_results_do_so_a_little() -> None:
    expected = outputs(convolutions())
    for name in ("intent.fp16", "intent.mixed", "intent.int8"):
        after = apply_pass(convolutions(), name)
        found = outputs(after)
        assert not np.array_equal(found, expected)
        np.testing.assert_allclose(found, expected, atol=0.05 * float(np.abs(expected).max()) + 0.05)
    assert "Relu" in node_counts(apply_pass(convolutions(), "intent.mixed"))


def test_a_failing_pass_is_named() -> None:
    broken = model([helper.make_node("Conv", ["x", "missing"], ["y"])], [])
    with pytest.raises(RewriteError, match=r"onnxoptimizer\.fuse_bn_into_conv fails: "):
        apply_pass(broken, "onnxoptimizer.fuse_bn_into_conv")


def test_names_and_order_do_not_count_and_all_else_does() -> None:
    one = convolutions()
    renamed = onnx.ModelProto()
    renamed.CopyFrom(one)
    for node in renamed.graph.node:
        node.name = f"renamed_{node.op_type}"
        node.doc_string = "said"
        for names in (node.input, node.output):
            names[:] = [f"{name}_" if name not in ("x", "y") else name for name in names]
    for tensor in renamed.graph.initializer:
        tensor.name += "_"
    assert identity(renamed) == identity(one)
    heavier = onnx.ModelProto()
    heavier.CopyFrom(one)
    heavier.graph.initializer[0].CopyFrom(weight("w1", 8, 3, 3, 3))
    assert identity(heavier) == identity(one)
    heavier.graph.initializer[0].raw_data = bytes(len(heavier.graph.initializer[0].raw_data))
    assert identity(heavier) != identity(one)
    assert identity(one_node("Relu")) != identity(one_node("Tanh"))
    assert identity(one_node("Elu", alpha=1.0)) != identity(one_node("Elu", alpha=2.0))


def branching(one: str, other: str) -> onnx.ModelProto:
    """Return a model whose branches read the values `one` and `other`, made by these operators."""
    found = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    then, otherwise = (
        helper.make_graph([helper.make_node("Identity", [read], ["z"])], read, [], [found])
        for read in ("one", "other")
    )
    nodes = [
        helper.make_node(one, ["x"], ["one"]),
        helper.make_node(other, ["x"], ["other"]),
        helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=otherwise),
    ]
    return model(nodes, [constant("yes", np.array(True))])


def test_models_whose_branches_read_other_values_are_not_the_same() -> None:
    assert identity(branching("Relu", "Tanh")) == identity(branching("Relu", "Tanh"))
    assert identity(branching("Relu", "Tanh")) != identity(branching("Tanh", "Relu"))


def test_models_with_the_same_texts_are_the_same() -> None:
    def texts(*words: str) -> onnx.ModelProto:
        texts_as_bytes = [word.encode() for word in words]
        held = TensorProto(name="words", data_type=TensorProto.STRING, dims=[2], string_data=texts_as_bytes)
        return model([helper.make_node("Relu", ["x"], ["y"])], [held])

    assert identity(texts("up", "down")) == identity(texts("up", "down"))
    assert identity(texts("up", "down")) != identity(texts("upd", "own"))


def test_each_model_is_made_once_and_what_does_not_change_is_left_alone(
    program: GraphProgram, tmp_path: Path
) -> None:
    rewriter = Rewriter(program, shared_cache(), tmp_path)
    assert rewriter.rewritten(()).file == program.file
    assert rewriter.rewritten(["onnxscript.no_op_cast"]) == rewriter.rewritten(())
    folded = rewriter.rewritten(["onnxscript.fuse_batchnorm_into_conv"])
    assert folded.file != program.file
    assert rewriter.rewritten(["onnxscript.no_op_cast", "onnxscript.fuse_batchnorm_into_conv"]) == folded
    assert identity(onnx.load(folded.file)) == folded.key


def test_a_rewriter_without_room_still_works(program: GraphProgram, tmp_path: Path) -> None:
    rewriter = Rewriter(program, shared_cache(capacity=0), tmp_path, capacity=0)
    one = rewriter.rewritten(["onnxscript.eliminate_identity"])
    assert one.file.parent == tmp_path
    other = rewriter.rewritten(["onnxscript.fuse_batchnorm_into_conv"])
    assert identity(onnx.load(other.file)) == other.key != one.key
    again = rewriter.rewritten(["onnxscript.eliminate_identity"])
    assert again.key == one.key
    assert identity(onnx.load(again.file)) == one.key


def test_what_another_process_made_is_not_made_again(program: GraphProgram, tmp_path: Path) -> None:
    cache = shared_cache(evicts=False)
    lists = (["onnxscript.no_op_cast", "onnxscript.fuse_batchnorm_into_conv"], ["onnxscript.no_op_cast"])
    first = [Rewriter(program, cache, tmp_path).rewritten(each) for each in lists]
    assert identity(onnx.load(first[0].file)) == first[0].key

    def applied(*_: object) -> onnx.ModelProto:
        raise AssertionError

    sent = pickle.loads(pickle.dumps(cache))
    assert [Rewriter(program, sent, tmp_path, apply=applied).rewritten(each) for each in lists] == first
    folder = cache.folder
    del sent
    assert folder.exists()
    del cache
    assert not folder.exists()


def test_an_identity_that_is_damaged_is_found_out_again(program: GraphProgram, tmp_path: Path) -> None:
    cache, names = shared_cache(), ["onnxscript.fuse_batchnorm_into_conv"]
    key = Rewriter(program, cache, tmp_path).model_key(names)
    (file,) = cache.folder.glob("*.key")
    file.write_bytes(b"../../../etc/passwd")
    assert Rewriter(program, cache, tmp_path).model_key(names) == key


def test_the_search_and_the_comparison_share_a_cache_in_which_the_comparison_has_room_left(
    program: GraphProgram,
) -> None:
    search, final = model_cache_of(program), final_cache_of(program)
    assert search.folder == final.folder
    assert final.capacity - search.capacity >= 2 << 30
    assert not search.evicts
    assert not final.evicts


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
    for index, branch in enumerate(branches):
        wanted = dict(branch)
        channels, bias, group = wanted.pop("channels"), wanted.pop("bias", False), wanted.get("group", 1)
        kernel = wanted.pop("kernel", 3)
        names = ["x", f"w{index}", *([f"b{index}"] if bias else [])]
        weights += [weight(f"w{index}", channels, 4 // group, kernel, kernel)]
        weights += [weight(f"b{index}", channels)] if bias else []
        nodes.append(helper.make_node("Conv", names, [f"c{index}"], **wanted))
        nodes += [helper.make_node(after, [f"c{index}"], [f"r{index}"])] if after else []
        outputs.append(f"{'r' if after else 'c'}{index}")
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


@settings(max_examples=examples(40), deadline=None)
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


def test_weights_that_a_caller_may_give_or_that_are_quantized_stay() -> None:
    given_ = convs([{"channels": 2}, {"channels": 4}])
    given_.graph.input.append(helper.make_tensor_value_info("w1", TensorProto.FLOAT, [4, 4, 3, 3]))
    assert apply_pass(given_, CONV) is given_
    quantized = convs([{"channels": 2}, {"channels": 4}])
    scale = constant("s", np.array(0.1, np.float32))
    quantized.graph.initializer.extend([scale, constant("q", np.ones((4, 4, 3, 3), np.int8))])
    quantized.graph.node[1].input[1] = "d"
    quantized.graph.node.insert(0, helper.make_node("DequantizeLinear", ["q", "s"], ["d"]))
    assert apply_pass(quantized, CONV) is quantized


DENSES = st.tuples(st.sampled_from([1, 3, 5]), st.sampled_from(["product", "biased", "gemm", "gemm biased"]))


def dense(layers: Sequence[tuple[int, str]], shape: Sequence[int]) -> onnx.ModelProto:
    """Make dense layers of one value, each of its width and kind."""
    nodes, weights = list[onnx.NodeProto](), list[onnx.TensorProto]()
    for index, (width, kind) in enumerate(layers):
        weights += [weight(f"w{index}", 4, width), weight(f"b{index}", width)]
        if kind.startswith("gemm"):
            names = ["x", f"w{index}", *([f"b{index}"] if "biased" in kind else [])]
            nodes.append(helper.make_node("Gemm", names, [f"y{index}"], alpha=0.5))
        else:
            biased = kind == "biased"
            nodes.append(
                helper.make_node("MatMul", ["x", f"w{index}"], [f"m{index}" if biased else f"y{index}"])
            )
            nodes += [helper.make_node("Add", [f"b{index}", f"m{index}"], [f"y{index}"])] if biased else []
    return model(nodes, weights, shape, outputs=[f"y{index}" for index in range(len(layers))])


@settings(max_examples=examples(40), deadline=None)
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
    one, other = (_branch_of(name, deep=deep) for name in ("m0", "m1"))
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


def _branch_of(name: str, *, deep: bool = False, out: str = "o") -> onnx.GraphProto:
    """Make a branch that reads a value, or one whose own branches do."""
    found = helper.make_tensor_value_info(out, TensorProto.FLOAT, None)
    node = helper.make_node("Abs", [name], [out])
    if deep:
        inner = _branch_of(name, out="p")
        node = helper.make_node("If", ["flag"], [out], then_branch=inner, else_branch=inner)
    return helper.make_graph([node], "branch", [], [found])
