"""What becomes of candidates: rewritten, verified, measured, and everything that can go wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

from damaged_files import damage_zip
from levels.graph.models import convolutions, model, tokens, weight, write
from levels.graph.tasks import ONCE, make, outcomes_of, task_of_file
from levels.outcomes import failure, measured
from planish.core import (
    Candidate,
    Failed,
    Measured,
    PlanishError,
    ProgramError,
    Task,
    evaluate,
)
from planish.levels.graph.evaluator import within_three_sigma
from planish.levels.graph.machine import counters
from planish.levels.graph.passes import ApplyPass, Disable, selection
from planish.levels.graph.rewriting import RewriteError, apply_pass
from planish.levels.graph.task_setup import evaluator_spec_of, unoptimized
from planish.measure import by_processor_time
from planish.measure.executors import InlineExecutor

IDENTITIES = Candidate((ApplyPass("onnxscript.eliminate_identity"),))


def test_what_costs_nothing_more_is_always_measured(tmp_path: Path) -> None:
    task = make(tmp_path, shape=("n", 3, 8, 8), batch="4")
    chosen = selection(["onnxscript.fuse_batchnorm_into_conv"], ["NchwcTransformer"]).candidate
    plain, folded, nothing = outcomes_of(task, Candidate(), chosen, unoptimized().candidate)
    values = measured(plain).values
    assert set(values) == {"latency", "throughput", "compile_time", "model_size"}
    assert values["throughput"] == pytest.approx(4 / values["latency"])
    assert values["model_size"] == (tmp_path / "net.onnx").stat().st_size
    assert measured(folded).values["model_size"] != values["model_size"]
    assert len(measured(plain).samples["latency"]) >= 3
    measured(nothing)


def no_boxes(folder: Path) -> Path:
    """Write a model of the scores of detections, of which there are none."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Identity", ["m"], ["i"]),
        helper.make_node("Softmax", ["i"], ["y"]),
    ]
    return write(model(nodes, [weight("w", 4, 6)], (0, 4)), folder / "boxes.onnx")


def test_a_model_of_no_rows_is_evaluated_as_the_runtime_runs_it(tmp_path: Path) -> None:
    file = no_boxes(tmp_path)
    session = onnxruntime.InferenceSession(str(file))
    answers: Any = session.run(None, {"x": np.empty((0, 4), np.float32)})
    assert answers[0].shape == (0, 6)
    with pytest.raises(InvalidArgument, match="Got: 1 Expected: 0"):  # 0 is a size and not open
        session.run(None, {"x": np.empty((1, 4), np.float32)})
    for found in outcomes_of(
        task_of_file(file), Candidate(), selection(["onnxscript.eliminate_identity"]).candidate
    ):
        assert measured(found).values["throughput"] == pytest.approx(1 / measured(found).values["latency"])


def test_data_of_a_model_of_no_rows_has_none(tmp_path: Path) -> None:
    file, given = no_boxes(tmp_path), str(tmp_path / "none.npz")
    np.savez(given, x=np.empty((0, 4), np.float32))
    measured(*outcomes_of(task_of_file(file, inputs=given), Candidate()))
    np.save(tmp_path / "labels.npy", np.empty(0, np.int64))
    labeled = task_of_file(file, inputs=given, labels=str(tmp_path / "labels.npy"))
    with pytest.raises(ProgramError, match="first output has no rows to be labeled"):
        outcomes_of(labeled, Candidate())


def test_a_table_of_no_rows_is_looked_up_by_no_ids(tmp_path: Path) -> None:
    file = write(tokens((0,), rows=0), tmp_path / "table.onnx")
    measured(*outcomes_of(task_of_file(file), Candidate()))


def test_what_takes_a_millisecond_is_interleaved_with_the_baseline(tmp_path: Path) -> None:
    task = make(tmp_path)

    def latencies(anchor: float) -> list[Measured]:
        spec = replace(evaluator_spec_of(task), timing=ONCE)
        spec.set_baseline(Measured({"latency": anchor}))
        batch = [Candidate(), unoptimized().candidate]
        return [measured(answer.outcome) for answer in evaluate(InlineExecutor(spec()), batch)]

    for outcome in latencies(1e-9):  # alone
        assert outcome.values["latency"] > 1e-7
    for outcome in latencies(1e3):  # so many times as long as the baseline
        assert outcome.values["latency"] > 10
        assert len(outcome.samples[by_processor_time("latency")]) == 3
        rates = [1 / seconds for seconds in outcome.samples[by_processor_time("latency")]]
        assert outcome.samples[by_processor_time("throughput")] == pytest.approx(rates)


def test_counters_count_no_baseline(tmp_path: Path) -> None:
    counted = evaluator_spec_of(make(tmp_path, "latency", "energy"), counted=["energy"])
    assert counted.baseline_time is None
    assert evaluator_spec_of(make(tmp_path, "latency")).baseline_time is not None


def test_a_model_s_size_has_its_weights_wherever_they_are(tmp_path: Path) -> None:
    file = tmp_path / "apart.onnx"
    onnx.save(convolutions(), file, save_as_external_data=True, location="apart.data", size_threshold=0)
    (found,) = outcomes_of(task_of_file(file), Candidate())
    apart = (tmp_path / "apart.data").stat().st_size
    assert apart > 0
    assert measured(found).values["model_size"] == file.stat().st_size + apart


def test_equal_models_are_measured_once_whatever_passes_made_them(tmp_path: Path) -> None:
    one, other = (
        selection(names).candidate
        for names in (
            ["onnxscript.eliminate_identity"],
            ["onnxscript.no_op_cast", "onnxscript.eliminate_identity"],
        )
    )
    task = make(tmp_path)
    first, again = outcomes_of(task, one, other)
    assert first == again
    first, again = outcomes_of(task, one, one, remember=False)
    assert first != again


def test_offline_work_is_kept_and_loaded_as_it_is(tmp_path: Path) -> None:
    task = make(tmp_path, "compile_time")
    (found,) = outcomes_of(task, selection(offline=True).candidate)
    assert measured(found).values["offline_time"] > 0
    assert len(measured(found).samples["compile_time"]) == 5


def test_memory_is_measured_where_it_is_asked_for(tmp_path: Path) -> None:
    (found,) = outcomes_of(make(tmp_path, "peak_memory"), Candidate())
    assert 0 < measured(found).values["peak_memory"] < 1000


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.BFLOAT16])
def test_memory_is_measured_whatever_inputs_are_called_and_made_of(tmp_path: Path, dtype: int) -> None:
    nodes = [
        helper.make_node("Cast", ["file"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Relu", ["f"], ["y"]),
    ]
    given, output = (
        helper.make_tensor_value_info(n, t, [4]) for n, t in (("file", dtype), ("y", TensorProto.FLOAT))
    )
    graph = helper.make_graph(nodes, "small", [given], [output])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    task = task_of_file(write(made, tmp_path / "net.onnx"), "peak_memory")
    (found,) = outcomes_of(task, Candidate())
    assert 0 < measured(found).values["peak_memory"] < 1000


def test_a_failing_pass_is_a_row(tmp_path: Path) -> None:
    def fail(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
        raise RewriteError(f"{name} fails: on {len(model.graph.node)} nodes")

    candidates = Candidate((ApplyPass("onnxscript.add_0"),)), Candidate()
    bad, good = outcomes_of(make(tmp_path), *candidates, apply=fail)
    assert bad == Failed("transform", "a pass fails", "onnxscript.add_0 fails: on 11 nodes")
    measured(good)


def test_a_wrong_answer_is_a_row(tmp_path: Path) -> None:
    def spoil(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
        made = apply_pass(model, name)
        weight = next(tensor for tensor in made.graph.initializer if tensor.name == "bias")
        weight.CopyFrom(onnx.numpy_helper.from_array(np.ones(5, np.float32), "bias"))
        return made

    (found,) = outcomes_of(make(tmp_path), IDENTITIES, apply=spoil)
    assert failure(found) == ("verify", "wrong answer")
    assert "output 0: off by" in str(found)


def test_at_the_end_answers_are_compared_on_inputs_that_the_search_did_not_see(tmp_path: Path) -> None:
    spec = evaluator_spec_of(make(tmp_path))
    made = (replace(spec, remember=remember)() for remember in (True, False))
    searched, kept = ([feed["x"].tobytes() for feed in each.feeds] for each in made)
    assert len(searched) >= 2
    assert kept[: len(searched)] == searched
    assert len(set(kept)) == len(kept) > len(searched)


def given(folder: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Task:
    np.savez(folder / "in.npz", x=array)
    return make(folder, inputs=str(folder / "in.npz"))


def test_at_the_end_answers_are_compared_on_inputs_made_of_the_users(tmp_path: Path) -> None:
    """A pass makes a model that is right on the user's inputs alone."""

    def overfit(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
        made = apply_pass(model, name)
        made.graph.node[0].input[0] = "seen"
        made.graph.initializer.append(onnx.numpy_helper.from_array(seen, "seen"))
        return made

    seen = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
    task = given(tmp_path, seen)
    measured(*outcomes_of(task, IDENTITIES, apply=overfit))
    (found,) = outcomes_of(task, IDENTITIES, remember=False, apply=overfit)
    assert failure(found) == ("verify", "wrong answer")


def test_where_the_users_inputs_are_the_only_ones_it_is_reported(tmp_path: Path) -> None:
    said = evaluator_spec_of(given(tmp_path, np.ones((1, 3, 8, 8), np.float32)))().notes
    assert said == ("candidates are compared on the given inputs alone: nothing in them may be moved",)
    asked = np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8)
    assert evaluator_spec_of(given(tmp_path, asked))().notes == ()


def test_a_broken_model_is_a_row(tmp_path: Path) -> None:
    def spoil(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
        made = apply_pass(model, name)
        made.graph.node[0].input[0] = "nowhere"
        return made

    (found,) = outcomes_of(make(tmp_path), IDENTITIES, apply=spoil)
    assert failure(found) == ("build", "refused by ONNX Runtime")


def test_a_selection_that_is_not_canonical_is_a_row(tmp_path: Path) -> None:
    steps = (Disable("NchwcTransformer"), ApplyPass("onnxscript.add_0"))
    (found,) = outcomes_of(make(tmp_path), Candidate(steps))
    assert failure(found) == ("transform", "illegal step")


def test_accuracy_is_reported_of_the_users_inputs_and_labels(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0).standard_normal((6, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=drawn)
    np.save(tmp_path / "labels.npy", np.zeros(6, np.int64))
    options = {"inputs": str(tmp_path / "in.npz"), "labels": str(tmp_path / "labels.npy")}
    task = make(tmp_path, "latency", "accuracy", **options, shape=(2, 3, 8, 8))
    for found in outcomes_of(task, Candidate(), Candidate((ApplyPass("intent.int8_static"),))):
        assert measured(found).values["accuracy"] in {n / 6 for n in range(7)}


@pytest.mark.parametrize("objective", ["energy", "power"])
def test_what_cannot_be_measured_is_reported(objective: str, tmp_path: Path) -> None:
    with pytest.raises(PlanishError, match=f"{objective} is not available here"):
        evaluator_spec_of(make(tmp_path, objective), counted=counters("cpu", tmp_path, tmp_path))


FITS = np.zeros((1, 3, 8, 8), np.float32)


@pytest.mark.parametrize(
    ("arrays", "damaged", "said"),
    [
        ({"x": FITS[..., 1:]}, False, r"is float32 \(1, 3, 8, 7\); the model takes x float32 1x3x8x8"),
        ({"z": FITS}, False, "has no array 'x', which the model takes"),
        ({"x": FITS, "y": np.zeros(1)}, False, "the model takes no 'y', which "),
        ({"x": FITS}, True, "cannot read arrays from "),
    ],
)
def test_inputs_that_do_not_fit_are_reported(
    arrays: dict[str, Any], said: str, tmp_path: Path, *, damaged: bool
) -> None:
    np.savez_compressed(tmp_path / "in.npz", **arrays)
    if damaged:
        damage_zip(tmp_path / "in.npz")
    with pytest.raises(PlanishError, match=said):
        outcomes_of(make(tmp_path, inputs=str(tmp_path / "in.npz")))


def test_outliers_do_not_move_the_latency() -> None:
    usual = [1.0, 1.1, 0.9] * 10
    assert within_three_sigma([*usual, 50.0]) == usual
    assert within_three_sigma([1.0, 1.0]) == [1.0, 1.0]
