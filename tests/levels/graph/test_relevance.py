"""Which passes matter for a model, found out in a process that they may end."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import numpy as np
import onnx
import pytest
from onnx import helper

from levels.graph.models import constant, convolutions, model, one_node, write
from planish.levels.graph.model_cache import Rewriter, final_cache_of, model_cache_of
from planish.levels.graph.pass_probe import Optimized, PassProbe, PassProbeError
from planish.levels.graph.passes import exclusions, passes, passes_of_kind
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.relevance import Relevance, analyze, known_relevance, remembered
from planish.levels.graph.sessions import SessionSettings
from planish.levels.graph.source import read_model


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> GraphProgram:
    return read_model(write(convolutions(), tmp_path_factory.mktemp("models") / "net.onnx"), {})


@pytest.fixture(scope="module")
def found(program: GraphProgram) -> Relevance:
    with closing(PassProbe(program, SessionSettings())) as probe:
        return analyze(probe, budget_s=120.0)


@pytest.fixture
def probe(program: GraphProgram) -> Generator[PassProbe]:
    with closing(PassProbe(program, SessionSettings())) as made:
        yield made


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
    groups = [*found.rewrites, *found.runtime, *found.without, *found.failing]
    assert len(groups) == len(set(groups)) == found.known
    assert {name for name, each in passes().items() if each.kind != "intent"} == set(groups)


def test_the_catalogue_has_every_transformer_of_the_runtime(probe: PassProbe) -> None:
    there = set(probe.effective(()))
    known = {each.name for each in passes_of_kind("transformer")}
    assert there <= known | exclusions().keys()
    assert known <= there


def test_without_time_everything_that_may_matter_stays(probe: PassProbe) -> None:
    hasty = analyze(probe, budget_s=0.0)
    assert "onnxscript.fuse_batchnorm_into_conv" in hasty.untried
    assert "onnxscript.fuse_erf_gelu" not in hasty.untried
    assert not hasty.alone
    assert hasty.known == 186


def workers() -> set[int]:
    """List the processes that this one has started, and that run."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for each in lists for pid in each.read_text(encoding="ascii").split()}


@contextmanager
def killed_again_and_again(spared: set[int]) -> Generator[None]:
    """Kill each process that this one has, for the time of the block."""
    over = Event()

    def kill() -> None:
        while not over.wait(0.01):
            for pid in workers() - spared:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    thread = Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.usefixtures("new_interpreters")
def test_a_process_that_dies_is_a_failure_and_is_started_again(program: GraphProgram) -> None:
    before = workers()
    probe = PassProbe(program, SessionSettings())
    key = probe.model_key(())
    (child,) = workers() - before
    os.kill(child, signal.SIGKILL)
    assert probe.counts(())["Conv"] == 2
    (again,) = workers() - before
    assert again != child
    with killed_again_and_again(before), pytest.raises(PassProbeError, match="killed by SIGKILL"):
        probe.counts(["onnxscript.eliminate_identity"])
    assert probe.state_key(["onnxscript.no_op_cast"]) == key
    probe.close()
    assert workers() == before


def test_a_process_that_hangs_is_a_failure(program: GraphProgram) -> None:
    probe = PassProbe(program, SessionSettings(), answer_s=0.001)
    # So many passes take seconds, and the executor looks at its limits many times meanwhile.
    with pytest.raises(PassProbeError, match="no answer, over"):
        probe.optimized(["onnxscript.no_op_cast"] * 300)
    assert probe.state_key(["onnxscript.no_op_cast"] * 300).startswith("fails: onnxscript.no_op_cast ")
    probe.close()


def test_evaluators_need_not_rewrite_what_a_probe_has_rewritten(
    program: GraphProgram, probe: PassProbe, tmp_path: Path
) -> None:
    names = ["onnxscript.eliminate_identity", "onnxscript.fuse_batchnorm_into_conv"]
    probe.load(names)
    key = probe.model_key(names)
    probe.close()

    def applied(*_: object) -> onnx.ModelProto:
        raise AssertionError("a pass is applied again")

    for cache in (model_cache_of(program), final_cache_of(program)):
        found = Rewriter(program, cache, tmp_path, apply=applied).rewritten(names)
        assert found.key == key
        assert found.file.parent == cache.folder


def test_weights_may_be_beside_the_model(probe: PassProbe, tmp_path: Path) -> None:
    apart = tmp_path / "net.onnx"
    onnx.save(convolutions(), apart, save_as_external_data=True, location="net.data", size_threshold=0)
    with closing(PassProbe(read_model(apart, {}), SessionSettings())) as beside:
        for disabled in ((), ("ConvBNFusion",)):
            assert beside.optimized((), disabled) == probe.optimized((), disabled)


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
    program = read_model(write(hard_swish(opset), tmp_path / "h.onnx"), {})
    with closing(PassProbe(program, SessionSettings())) as probe:
        found = analyze(probe, budget_s=120.0)
    assert ("onnxscript.fuse_hardswish" in found.rewrites) is is_valid
    assert ("HardSwish" in found.failing.get("onnxscript.fuse_hardswish", "")) is not is_valid


def test_what_goes_wrong_is_reported_and_ends_nothing(program: GraphProgram) -> None:
    class Uncounted(PassProbe):
        def counts(self, rewrites: Sequence[str]) -> Mapping[str, int]:
            del rewrites
            raise PassProbeError("KeyError: 'w'")

    class Unnamed(Uncounted):
        def model_key(self, rewrites: Sequence[str]) -> str:
            del rewrites
            raise PassProbeError("KeyError: 'w'")

    with closing(Uncounted(program, SessionSettings())) as probe:
        found = analyze(probe, budget_s=1.0)
    assert "nodes after no pass: KeyError: 'w'" in found.problems
    assert not found.is_complete
    with closing(Unnamed(program, SessionSettings())) as probe:
        lost = analyze(probe)
    assert lost.problems == ("the model as it came: KeyError: 'w'",)
    assert "onnxscript.fuse_batchnorm_into_conv" in lost.rewrites
    assert "NchwcTransformer" in lost.runtime


def test_an_error_that_no_pass_foresaw_is_the_answer_to_one_question(probe: PassProbe) -> None:
    with pytest.raises(PassProbeError, match="AttributeError: "):
        probe.optimized((), (), "no level")
    assert probe.counts(())


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


def test_a_rule_without_which_the_runtime_fails_stays(program: GraphProgram) -> None:
    class Failing(PassProbe):
        def optimized(
            self, rewrites: Sequence[str], disabled: Sequence[str] = (), optimization: str = ""
        ) -> Optimized:
            if "ConvAddFusion" in disabled:
                raise PassProbeError("killed by SIGSEGV")
            return super().optimized(rewrites, disabled, optimization)

        def model_key(self, rewrites: Sequence[str]) -> str:
            if rewrites:
                raise PassProbeError("too long for this test")
            return super().model_key(rewrites)

    with closing(Failing(program, SessionSettings())) as probe:
        found = analyze(probe, budget_s=120.0)
    assert "ConvAddFusion" in found.runtime
    assert "ConvMulFusion" in found.without


def test_what_the_installed_runtime_lacks_is_reported(program: GraphProgram) -> None:
    class Older(PassProbe):
        def effective(self, rewrites: Sequence[str]) -> Mapping[str, bool]:
            del rewrites
            return {"NchwcTransformer": True}

    with closing(Older(program, SessionSettings())) as probe:
        older = analyze(probe, budget_s=0.01)
    assert "SkipLayerNormFusion" in older.missing
    assert "NchwcTransformer" not in older.missing
    assert "NchwcTransformer" in older.runtime
