"""What becomes of patches: errors, times, and everything that can go wrong, in real workers."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from levels.hlo.workloads import INFERENCE, PREDICT, STEP, TRAINING, examples, task, write_all
from planish.core import (
    Candidate,
    EvaluatorSpec,
    Executor,
    Failed,
    Measured,
    Outcome,
    PlanishError,
    Task,
    evaluate,
    evaluate_in_order,
)
from planish.levels.hlo.edits import DeleteOp, MoveOp, ReplaceConstant, ReplaceOperand, ScaleConstant
from planish.levels.hlo.evaluator import evaluator_spec_of, scores_at_the_end
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.workload.arguments import fit
from planish.levels.hlo.workload.examples import Parts
from planish.measure import Timing, ends_by
from planish.measure.executors import InlineExecutor, LocalExecutor
from planish.sandbox import Limits

ONCE = Timing(budget_s=0.0, block_s=0.0, fewest=1, most=1)

LOOP = """
func.func public @main(%images: tensor<5x4xf32> loc("images")) -> tensor<5x3xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<5x4xf32>
  %two = stablehlo.constant dense<2.0> : tensor<5x4xf32>
  %x = stablehlo.add %images, %two : tensor<5x4xf32>
  %m = stablehlo.while(%i = %x) : tensor<5x4xf32>
  cond {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %first = stablehlo.slice %i [0:1, 0:1] : (tensor<5x4xf32>) -> tensor<1x1xf32>
    %number = stablehlo.reshape %first : (tensor<1x1xf32>) -> tensor<f32>
    %more = stablehlo.compare GT, %number, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %less = stablehlo.subtract %i, %one : tensor<5x4xf32>
    stablehlo.return %less : tensor<5x4xf32>
  }
  %s = stablehlo.slice %m [0:5, 0:3] : (tensor<5x4xf32>) -> tensor<5x3xf32>
  return %s : tensor<5x3xf32>
}
"""
"""Operation 0 is what the counter falls by."""

LARGE = """
func.func public @main(%images: tensor<5x4xf32> loc("images")) -> tensor<5x3xf32> {
  %s = stablehlo.slice %images [0:5, 0:3] : (tensor<5x4xf32>) -> tensor<5x3xf32>
  %n = stablehlo.constant dense<1000> : tensor<i64>
  %i = stablehlo.iota dim = 0 : tensor<100000x100000xi32>
  %t = "stablehlo.sort"(%i) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<100000x100000xi32>) -> tensor<100000x100000xi32>
  %k = stablehlo.dynamic_slice %t, %n, %n, sizes = [1, 1]
      : (tensor<100000x100000xi32>, tensor<i64>, tensor<i64>) -> tensor<1x1xi32>
  %r = stablehlo.reshape %k : (tensor<1x1xi32>) -> tensor<i32>
  %f = stablehlo.convert %r : (tensor<i32>) -> tensor<f32>
  %z = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<5x3xf32>
  %y = stablehlo.add %s, %s : tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}
"""


def outcomes_of(of: Task, *candidates: Candidate) -> list[Outcome]:
    evaluator = replace(evaluator_spec_of(of), timing=ONCE)()
    return [answer.outcome for answer in evaluate(InlineExecutor(evaluator), candidates)]


def in_worker(of: Task, candidates: Sequence[Candidate], limits: Limits) -> list[Outcome]:
    with LocalExecutor(replace(evaluator_spec_of(of), timing=ONCE), limits=limits) as executor:
        found = evaluate_in_order(executor, candidates)
    return [result.outcome for result in found if result]


def error(outcome: Outcome) -> float:
    assert isinstance(outcome, Measured), outcome
    assert set(outcome.values) == {"time_s", "error"}
    assert outcome.values["time_s"] > 0
    return outcome.values["error"]


def drawn(part: int, count: int) -> list[int]:
    """Which examples a part has: the search's come first, as there is no training, then the validation's."""
    return np.random.default_rng([0, 0]).permutation(60)[part : part + count].tolist()


def test_the_error_of_a_prediction_is_the_share_of_wrong_answers(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, PREDICT, INFERENCE))
    images, labels = examples(60)
    answers = images.reshape(60, 4)[:, :3].argmax(axis=1)
    wanted = float((answers != labels)[drawn(0, 9)].mean())
    assert 0 < wanted < 1
    assert error(outcomes_of(of, Candidate())[0]) == pytest.approx(wanted)


def test_a_training_takes_the_steps_that_numpy_takes(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, STEP, TRAINING))
    images, labels = examples(60)
    pixels, rows = images.reshape(60, 4).astype("f") / 255, np.eye(3, dtype="f")[labels]
    w = np.random.default_rng(0).normal(0, (2 / 4) ** 0.5, (4, 3)).astype("f")
    train, search = drawn(0, 25), drawn(25, 9)
    draw = np.random.default_rng(0)
    for batch in np.concatenate([draw.permutation(5) for _ in range(4)])[:12]:
        x, t = (array[train][batch * 5 : batch * 5 + 5] for array in (pixels, rows))
        w += 0.1 * x.T @ (t - x @ w)
    wanted = float(((pixels[search] @ w).argmax(axis=1) != labels[search]).mean())
    assert 0 < wanted < 1
    slow, quick = (Timing(budget_s=s, block_s=0, fewest=n, most=n) for s, n in ((0.0, 1), (1.0, 100)))
    for timing in (slow, quick):  # whether fewer steps are timed than trained, or more
        (answer,) = evaluate(InlineExecutor(replace(evaluator_spec_of(of), timing=timing)()), [Candidate()])
        assert error(answer.outcome) == pytest.approx(wanted)


def test_patches_that_compute_the_same_are_measured_once(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, STEP, TRAINING))
    dead = Candidate((MoveOp("6", "0"),))
    first, second, third = outcomes_of(of, Candidate(), dead, Candidate((ScaleConstant("3", 2.0),)))
    assert first == second  # to the last digit of its times, so they are of one measurement
    assert third != first


def test_answers_that_are_not_finite_are_a_failure(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, STEP, TRAINING))
    (outcome,) = outcomes_of(of, Candidate((ScaleConstant("3", 1e30),)))
    assert outcome == Failed("verify", "not finite", "none of 9 answers is finite")


def test_an_edit_that_is_not_legal_is_a_failure(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, STEP, TRAINING))
    missing = Candidate((DeleteOp("77", (("arg0", ()),)),))
    (outcome,) = outcomes_of(of, missing)
    assert isinstance(outcome, Failed)
    assert (outcome.stage, outcome.reason) == ("transform", "not legal")


def test_times_are_relative_to_what_an_earlier_run_found_of_the_baseline(tmp_path: Path) -> None:
    spec = evaluator_spec_of(task(write_all(tmp_path, PREDICT, INFERENCE)))
    spec.set_baseline(Measured({"time_s": 1000.0, "error": 0.5}))
    (answer,) = evaluate(InlineExecutor(spec()), [Candidate()])
    assert isinstance(answer.outcome, Measured)
    assert 100 < answer.outcome.values["time_s"] < 10_000


def test_an_endless_loop_is_a_row(tmp_path: Path) -> None:
    workload = INFERENCE.replace('weights = "w.npz"\n', "")
    of = task(write_all(tmp_path, LOOP, workload))
    endless = Candidate((ReplaceConstant("0", -1.0),))
    before, stuck, after = in_worker(of, [Candidate(), endless, Candidate()], Limits(verify=1.0))
    assert isinstance(stuck, Failed)
    assert (stuck.stage, stuck.reason) == ("verify", "timeout")
    assert error(before) == error(after)


def test_forty_gigabytes_are_a_row(tmp_path: Path) -> None:
    workload = INFERENCE.replace('weights = "w.npz"\n', "")
    of = task(write_all(tmp_path, LARGE, workload))
    needed = Candidate((ReplaceOperand("10", 1, "9#0"),))
    before, large, after = in_worker(of, [Candidate(), needed, Candidate()], Limits(build=20, verify=20))
    assert isinstance(large, Failed)
    assert (large.stage, large.reason) == ("run", "out of memory")
    assert error(before) == error(after)


def test_the_end_trains_longer_and_sees_the_other_parts(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, STEP, TRAINING))
    (outcome,) = scores_at_the_end(of, [Candidate()], LocalExecutor)
    assert isinstance(outcome, Measured)
    assert set(outcome.values) == {"error", "error_validation", "error_final"}
    (during,) = outcomes_of(of, Candidate())
    assert outcome.values["error"] != error(during)


def test_where_time_ends_a_scored_candidate_keeps_what_decides(tmp_path: Path) -> None:
    """The validation comes first, of all candidates; the final part may be cut."""
    started = count()

    @contextmanager
    def start(spec: EvaluatorSpec, /, *, workers: int = 1) -> Generator[Executor]:
        over = time.monotonic() if next(started) else math.inf
        with LocalExecutor(spec, workers=workers) as executor, ends_by(over):
            yield executor

    of = task(write_all(tmp_path, PREDICT, INFERENCE))
    (outcome,) = scores_at_the_end(of, [Candidate()], start)
    assert isinstance(outcome, Measured)
    assert "error_validation" in outcome.values
    assert "error_final" not in outcome.values


def test_a_search_cannot_see_the_final_part(tmp_path: Path) -> None:
    module = write_all(tmp_path, PREDICT, INFERENCE)
    of = task(module)
    with pytest.raises(PlanishError, match="unseen"):
        replace(evaluator_spec_of(of), parts=("final",))
    program = of.program
    fitted = fit(program.module, program.workload)
    with pytest.raises(PlanishError, match="unseen"):
        Parts(program.workload, fitted).read("final", fitted.predict)
    assert len(Parts(program.workload, fitted, at_the_end=True).read("final", fitted.predict).labels) == 20


def test_both_evaluators_of_the_level_see_the_part_of_the_search_alone(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, PREDICT, INFERENCE))
    for final in (False, True):
        recipe = HloLevel().evaluator(of, final=final)
        assert (recipe.parts, recipe.at_the_end) == (("search",), False)


def test_the_data_may_not_change_under_a_program(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, PREDICT, INFERENCE))
    np.savez(tmp_path / "data" / "set.npz", images=examples(60)[0], labels=np.zeros(60, int))
    with pytest.raises(PlanishError, match="changed after the program was read"):
        outcomes_of(of, Candidate())


def test_without_data_there_are_made_examples_and_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLANISH_DATA", raising=False)
    of = task(write_all(tmp_path, STEP, TRAINING.replace('folder = "data"', 'stand_in = "made"')))
    evaluator = evaluator_spec_of(of)()
    assert evaluator.notes
    assert "made data" in evaluator.notes[0]
    first, second = (outcomes_of(of, Candidate())[0] for _ in range(2))
    assert error(first) == error(second) < 0.5
