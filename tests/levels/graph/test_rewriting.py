"""Applying rewriting passes, and telling models apart."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from onnxscript.rewriter.rules import common

from levels.graph.models import constant, convolutions, model, one_node, weight, write
from planish.levels.graph.model_protos import identity, node_counts
from planish.levels.graph.passes import EXACT, passes, passes_of_kind
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.rewriting import (
    RewriteError,
    Rewriter,
    apply_pass,
    final_cache_of,
    model_cache_of,
    rewrite,
)
from planish.levels.graph.source import read_model
from planish.sandbox.scratch import shared_cache

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


def test_a_batch_normalisation_is_folded_away() -> None:
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
    rewriter = Rewriter(program, shared_cache(room=0), tmp_path, room=0)
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
    assert final.room - search.room >= 2 << 30
    assert not search.evicts
    assert not final.evicts
