"""Which passes matter for a model, found out in a process that they may end."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from graph.models import constant, convolutions, model, one_node, write
from planish.levels.graph.pass_probe import Examiner, ExaminerError
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.relevance import Relevance, analyse, known_relevance, remembered
from planish.levels.graph.sessions import SessionSettings
from planish.levels.graph.source import read_model


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> GraphProgram:
    return read_model(write(convolutions(), tmp_path_factory.mktemp("models") / "net.onnx"), {})


@pytest.fixture(scope="module")
def found(program: GraphProgram) -> Relevance:
    examiner = Examiner(program, SessionSettings())
    try:
        return analyse(examiner, patience_s=120.0)
    finally:
        examiner.close()


def test_what_changes_the_model_is_kept_and_the_rest_is_not(found: Relevance) -> None:
    assert "onnxscript.fuse_batchnorm_into_conv" in found.alone
    assert "onnxscript.eliminate_identity" in found.alone
    assert "onnxscript.fuse_erf_gelu" in found.without
    assert {"ConvBNFusion", "EliminateDropout", "NchwcTransformer"} <= set(found.runtime)
    assert "AttentionFusion" in found.without
    assert found.unknown == 0
    assert not found.untried
    assert found.kept < found.known / 2
    assert found.missing == ()


def test_every_pass_is_accounted_for_once(found: Relevance) -> None:
    from planish.levels.graph.passes import passes

    groups = [*found.rewrites, *found.runtime, *found.without, *found.failing]
    assert len(groups) == len(set(groups)) == found.known
    assert {name for name, each in passes().items() if each.kind != "intent"} == set(groups)


def test_the_catalogue_has_every_transformer_of_the_runtime(program: GraphProgram) -> None:
    from planish.levels.graph.passes import exclusions, passes_of_kind

    examiner = Examiner(program, SessionSettings())
    there = set(examiner.fired(()))
    examiner.close()
    known = {each.name for each in passes_of_kind("transformer")}
    assert there <= known | exclusions().keys()
    assert known <= there


def test_without_time_everything_that_may_matter_stays(program: GraphProgram) -> None:
    examiner = Examiner(program, SessionSettings())
    hasty = analyse(examiner, patience_s=0.0)
    examiner.close()
    assert "onnxscript.fuse_batchnorm_into_conv" in hasty.untried
    assert "onnxscript.fuse_erf_gelu" not in hasty.untried
    assert not hasty.alone
    assert hasty.known == 186


def test_a_process_that_dies_is_a_failure_and_is_started_again(program: GraphProgram) -> None:
    examiner = Examiner(program, SessionSettings())
    name = examiner.made(())
    child = examiner.pid
    assert child is not None
    os.kill(child, signal.SIGKILL)
    with pytest.raises(ExaminerError, match="killed by SIGKILL"):
        examiner.counts(())
    assert examiner.name(["onnxscript.no_op_cast"]) == name
    examiner.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_process_that_hangs_is_a_failure(program: GraphProgram) -> None:
    examiner = Examiner(program, SessionSettings(), patience_s=0.001)
    with pytest.raises(ExaminerError, match="no answer in"):
        examiner.counts(())
    assert examiner.name(["onnxscript.no_op_cast"]) == "fails: onnxscript.no_op_cast"
    examiner.close()


def test_weights_may_be_beside_the_model(program: GraphProgram, tmp_path: Path) -> None:
    apart = tmp_path / "net.onnx"
    onnx.save(convolutions(), apart, save_as_external_data=True, location="net.data", size_threshold=0)
    beside = Examiner(read_model(apart, {}), SessionSettings())
    whole = Examiner(program, SessionSettings())
    for disabled in ((), ("ConvBNFusion",)):
        assert beside.optimised((), disabled) == whole.optimised((), disabled)
    beside.close()
    whole.close()


def hard_swish(opset: int) -> onnx.ModelProto:
    """Make a hard swish of its parts; its operator is of opset 14."""
    node, scalars = helper.make_node, {"three": 3, "six": 6, "zero": 0}
    nodes = [
        node("Add", ["x", "three"], ["a"]),
        node("Clip", ["a", "zero", "six"], ["c"]),
        node("Mul", ["x", "c"], ["m"]),
        node("Div", ["m", "six"], ["y"]),
    ]
    return model(nodes, [constant(n, np.array(v, np.float32)) for n, v in scalars.items()], opset=opset)


@pytest.mark.parametrize(("opset", "is_valid"), [(13, False), (17, True)])
def test_a_pass_that_makes_the_model_invalid_leaves_the_space(
    opset: int, is_valid: bool, tmp_path: Path
) -> None:
    examiner = Examiner(read_model(write(hard_swish(opset), tmp_path / "h.onnx"), {}), SessionSettings())
    found = analyse(examiner, patience_s=120.0)
    examiner.close()
    assert ("onnxscript.fuse_hardswish" in found.rewrites) is is_valid
    assert ("HardSwish" in found.failing.get("onnxscript.fuse_hardswish", "")) is not is_valid


def test_what_goes_wrong_is_told_and_ends_nothing(
    program: GraphProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> dict[str, int]:
        raise ExaminerError("KeyError: 'w'")

    examiner = Examiner(program, SessionSettings())
    monkeypatch.setattr(Examiner, "counts", broken)
    found = analyse(examiner, patience_s=1.0)
    assert "nodes after no pass: KeyError: 'w'" in found.problems
    assert not found.is_complete
    monkeypatch.setattr(Examiner, "made", broken)
    lost = analyse(examiner)
    examiner.close()
    assert lost.problems == ("the model as it came: KeyError: 'w'",)
    assert "onnxscript.fuse_batchnorm_into_conv" in lost.rewrites
    assert "NchwcTransformer" in lost.runtime


def test_an_error_that_no_pass_foresaw_is_the_answer_to_one_question(program: GraphProgram) -> None:
    examiner = Examiner(program, SessionSettings())
    with pytest.raises(ExaminerError, match="AttributeError: "):
        examiner.optimised((), (), "no level")
    assert examiner.counts(())
    examiner.close()


def test_what_was_found_is_kept_by_content(program: GraphProgram, tmp_path: Path, found: Relevance) -> None:
    assert known_relevance(program, SessionSettings()) is None
    assert remembered(program, SessionSettings(), lambda: found) == found
    assert known_relevance(program, SessionSettings()) == found
    other = read_model(write(one_node("Relu"), tmp_path / "other.onnx"), {})
    assert known_relevance(other, SessionSettings()) is None


def test_what_was_found_in_a_session_says_nothing_of_one_of_another_level(
    tmp_path: Path, found: Relevance
) -> None:
    model = read_model(write(one_node("Relu"), tmp_path / "level.onnx"), {})
    assert remembered(model, SessionSettings(optimization="none"), lambda: found) == found
    assert known_relevance(model, SessionSettings()) is None
    assert known_relevance(model, SessionSettings(cores=2, optimization="none")) == found


def test_what_there_was_no_time_for_is_found_out_where_all_is_wanted(
    tmp_path: Path, found: Relevance
) -> None:
    model = read_model(write(one_node("Relu"), tmp_path / "hasty.onnx"), {})
    hasty = replace(found, unknown=1)
    assert remembered(model, SessionSettings(), lambda: hasty) == hasty
    assert remembered(model, SessionSettings(), lambda: found) == hasty
    assert remembered(model, SessionSettings(), lambda: found, complete=True) == found
    assert remembered(model, SessionSettings(), lambda: hasty, complete=True) == found


def test_a_rule_without_which_the_runtime_fails_stays(
    program: GraphProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, came = Examiner.optimised, Examiner.made

    def optimised(examiner: Examiner, rewrites: Sequence[str], disabled: Sequence[str] = ()) -> object:
        if "ConvAddFusion" in disabled:
            raise ExaminerError("killed by SIGSEGV")
        return whole(examiner, rewrites, disabled)

    def made(examiner: Examiner, rewrites: Sequence[str]) -> str:
        if rewrites:
            raise ExaminerError("too long for this test")
        return came(examiner, rewrites)

    monkeypatch.setattr(Examiner, "optimised", optimised)
    monkeypatch.setattr(Examiner, "made", made)
    examiner = Examiner(program, SessionSettings())
    found = analyse(examiner, patience_s=120.0)
    examiner.close()
    assert "ConvAddFusion" in found.runtime
    assert "ConvMulFusion" in found.without


def test_what_the_installed_runtime_lacks_is_told(
    program: GraphProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Examiner, "fired", _fired)
    examiner = Examiner(program, SessionSettings())
    older = analyse(examiner, patience_s=0.01)
    examiner.close()
    assert "SkipLayerNormFusion" in older.missing
    assert "NchwcTransformer" not in older.missing
    assert "NchwcTransformer" in older.runtime


def _fired(_: Examiner, rewrites: object) -> dict[str, bool]:
    del rewrites
    return {"NchwcTransformer": True}
