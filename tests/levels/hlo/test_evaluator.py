"""Errors, times and failures of patches in real workers; scores, cross-checks and baselines at the end."""

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
from levels.outcomes import failure, measured
from planish.core import (
    Candidate,
    CrossCheck,
    EvaluatorSpec,
    Executor,
    Failed,
    Measured,
    Outcome,
    PlanishError,
    Task,
    evaluate,
    evaluate_in_order,
    within,
)
from planish.levels.hlo import program_from
from planish.levels.hlo.backend import Executable, XlaBackend
from planish.levels.hlo.edits import (
    CopyOp,
    DeleteOp,
    Edit,
    MoveOp,
    ReplaceConstant,
    ReplaceOperand,
    ScaleConstant,
)
from planish.levels.hlo.evaluator import (
    DISAGREE,
    HloEvaluator,
    agreement,
    evaluator_spec_of,
    scores_at_the_end,
    work_of,
)
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.patch import original, where
from planish.levels.hlo.space import PatchSpace
from planish.levels.hlo.workload.arguments import fit
from planish.levels.hlo.workload.examples import LabeledExamples
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
    values = measured(outcome).values
    assert set(values) == {"time_s", "error"}
    assert values["time_s"] > 0
    return values["error"]


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


@pytest.mark.slow
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
    assert failure(outcome) == ("transform", "not legal")


def test_times_are_relative_to_what_an_earlier_run_found_of_the_baseline(tmp_path: Path) -> None:
    spec = evaluator_spec_of(task(write_all(tmp_path, PREDICT, INFERENCE)))
    spec.set_baseline(Measured({"time_s": 1000.0, "error": 0.5}))
    (answer,) = evaluate(InlineExecutor(spec()), [Candidate()])
    assert 100 < measured(answer.outcome).values["time_s"] < 10_000


@pytest.mark.slow
def test_an_endless_loop_is_a_row(tmp_path: Path) -> None:
    workload = INFERENCE.replace('weights = "w.npz"\n', "")
    of = task(write_all(tmp_path, LOOP, workload))
    endless = Candidate((ReplaceConstant("0", -1.0),))
    before, stuck, after = in_worker(of, [Candidate(), endless, Candidate()], Limits(verify=1.0))
    assert failure(stuck) == ("verify", "timeout")
    assert error(before) == error(after)


def test_forty_gigabytes_are_a_row(tmp_path: Path) -> None:
    workload = INFERENCE.replace('weights = "w.npz"\n', "")
    of = task(write_all(tmp_path, LARGE, workload))
    needed = Candidate((ReplaceOperand("10", 1, "9#0"),))
    before, large, after = in_worker(of, [Candidate(), needed, Candidate()], Limits(build=20, verify=20))
    assert failure(large) == ("run", "out of memory")
    assert error(before) == error(after)


def test_the_end_trains_longer_and_sees_the_other_parts(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, STEP, TRAINING))
    good, bad = (measured(each).values for each in scores_at_the_end(of, [NOTHING, WORSE], LocalExecutor))
    assert set(good) == {"error", "error_validation", "error_final"}
    assert good["error_final"] < bad["error_final"]
    assert good["error"] != error(*outcomes_of(of, NOTHING))


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
    assert "error_validation" in measured(outcome).values
    assert "error_final" not in measured(outcome).values


def test_a_search_cannot_see_the_final_part(tmp_path: Path) -> None:
    module = write_all(tmp_path, PREDICT, INFERENCE)
    of = task(module)
    with pytest.raises(PlanishError, match="unseen"):
        replace(evaluator_spec_of(of), parts=("final",))
    program = of.program
    fitted = fit(program.module, program.workload)
    with pytest.raises(PlanishError, match="unseen"):
        LabeledExamples(program.workload, fitted).calls("final", fitted.predict)
    examples = LabeledExamples(program.workload, fitted, at_the_end=True)
    assert examples.calls("final", fitted.predict).count == 20


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
    assert "generated data" in evaluator.notes[0]
    first, second = (outcomes_of(of, Candidate())[0] for _ in range(2))
    assert error(first) == error(second) < 0.5


LEVEL = HloLevel()
NOTHING = Candidate()
WILD = Candidate((DeleteOp("0", (("arg1", (("slice", (0, 1), (5, 4)),)),)),))
"""Takes the next pixel for the answer."""
WORSE = Candidate((ScaleConstant("3", 0.0),))


def test_answers_are_scored_beside_those_of_the_unchanged_module(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, PREDICT, INFERENCE))
    scores = LEVEL.final_checks(of).heldout_scores
    assert scores is not None
    same, wild = (measured(each).values for each in scores([NOTHING, WILD], LocalExecutor))
    parts = ("error", "error_validation", "error_final")
    assert set(same) == {*parts, *map(within, parts)}
    assert all(same[within(part)] < wild[within(part)] for part in parts)


def test_cross_checks_distinguish_a_difference_from_no_answer() -> None:
    assert agreement(Measured({"difference": 1e-6})) == CrossCheck(True, 1e-6)
    disagree = Failed("verify", DISAGREE, "result 0 differs")
    assert agreement(disagree) == CrossCheck(False, None, "the back ends disagree: result 0 differs")
    assert agreement(Failed("build", "timeout")) == CrossCheck(None, None, "timeout")


def test_the_original_form_is_measured_as_the_module_is(tmp_path: Path) -> None:
    module = write_all(tmp_path, PREDICT, f'original = "old.mlir"\n{INFERENCE}')
    (tmp_path / "old.mlir").write_text(PREDICT)
    of = task(module)
    find = LEVEL.final_checks(of).secondary_baseline
    assert find is not None
    reference = find()
    assert (reference.name, reference.candidate) == ("old.mlir", NOTHING)
    assert reference.spec is not None
    (answer,) = evaluate(InlineExecutor(reference.spec(), lock=tmp_path / "lock"), [NOTHING])
    assert set(measured(answer.outcome).values) == {"time_s", "error"}
    assert LEVEL.load(of.program.text, {}) == of.program
    (tmp_path / "old.mlir").write_text(PREDICT + "\n")
    with pytest.raises(PlanishError, match="changed after the program was read"):
        find()
    (tmp_path / "old.mlir").unlink()
    with pytest.raises(PlanishError, match="cannot read"):
        find()


def test_an_original_form_must_be_there(tmp_path: Path) -> None:
    module = write_all(tmp_path, PREDICT, f'original = "old.mlir"\n{INFERENCE}')
    with pytest.raises(PlanishError, match="cannot read the original module"):
        task(module)


def test_most_modules_have_no_other_form(tmp_path: Path) -> None:
    assert LEVEL.final_checks(task(write_all(tmp_path, PREDICT, INFERENCE))).secondary_baseline is None


class Counting(XlaBackend):
    """Counts what it compiles."""

    compiled = 0

    def compile(self, text: str) -> Executable:
        self.compiled += 1
        return super().compile(text)


def test_at_the_end_a_module_is_compiled_once_and_timed_each_time(tmp_path: Path) -> None:
    of, backend = task(write_all(tmp_path, STEP, TRAINING)), Counting()
    evaluator = HloEvaluator(evaluator_spec_of(of, final=True), backend)
    executor, before = InlineExecutor(evaluator, lock=tmp_path / "lock"), backend.compiled
    found = evaluate(executor, [WORSE, NOTHING, WORSE])
    one, other, again = (measured(answer.outcome) for answer in found)
    assert backend.compiled == before + 1, "the unchanged module is there already"
    assert one.values["error"] == again.values["error"] != other.values["error"]
    assert one.samples != again.samples


def test_edits_are_selected_where_they_are_valid_alone(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, STEP, TRAINING))
    space = PatchSpace(of.program.module)
    copy = CopyOp("4", "5", (), "5", 1)
    of_copy = DeleteOp(copy.id_prefix, (("4#0", ()),))
    patch = Candidate((copy, ScaleConstant("3", 2.0), of_copy))
    assert space.selected(patch, (0, 2)) == Candidate((copy, of_copy))
    assert space.selected(patch, (1, 2)) is None
    assert space.selected(patch, ()) == NOTHING


LAYERS = """
func.func public @main(%a: tensor<2xf32> loc("a"), %b: tensor<2xf32> loc("b")) -> tensor<2xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<2xf32> loc("step")
  %x = stablehlo.multiply %c, %c : tensor<2xf32> loc("step/one/mul")
  %y = stablehlo.add %a, %x : tensor<2xf32> loc("step/one/add")
  %z = stablehlo.add %b, %y : tensor<2xf32> loc("step/two/add")
  return %z : tensor<2xf32>
}
"""


@pytest.mark.parametrize(
    ("uid", "shown"),
    [
        ("0", ", in step, used in step/one/mul, with a"),
        ("1", ", in step/one/mul, with a"),
        ("2", ", in step/one/add, with a"),
        ("3", ", in step/two/add, with b"),
        ("4", ""),
    ],
)
def test_an_operation_is_described_by_its_layer_and_what_it_works_on(uid: str, shown: str) -> None:
    assert where(original(program_from(LAYERS)), uid) == shown


MODULE = """
%a = stablehlo.constant dense<1.000000e-01> : tensor<f32>
%b = stablehlo.constant dense<1.000000e-01> : tensor<4x3xf32>
%c = stablehlo.constant dense<0.300000012> : tensor<bf16>
%d = stablehlo.constant dense<-7.000000e+00> : tensor<f32>
%e = stablehlo.constant dense<1.000000e+00> : tensor<f32>
%f = stablehlo.constant dense<0xFF800000> : tensor<f32>
%g = stablehlo.constant dense<3> : tensor<i32>
"""


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("dense<0.300000012>", "dense<9.000000e-01>", True),
        ("dense<-7.000000e+00>", "dense<-5.000000e+00>", True),
        ("dense<1.000000e-01>", "dense<0.700000000>", True),  # both of them
        ("dense<1.000000e-01> : tensor<f32>", "dense<0.700000000> : tensor<f32>", False),  # no longer equal
        ("dense<0.300000012>", "dense<1.000000e-01>", False),  # equal now: computed once
        ("dense<-7.000000e+00>", "dense<7.000000e+00>", False),
        ("dense<0.300000012>", "dense<0.000000e+00>", False),
        ("dense<0.300000012>", "dense<1.000000e+00>", False),
        ("dense<0.300000012>", "dense<5.000000e-01>", False),
        ("dense<0.300000012>", "dense<1.000000e-38>", False),
        ("dense<0.300000012>", "dense<0x7FC0>", False),
        ("dense<1.000000e+00>", "dense<1.100000e+00>", False),
        ("dense<3>", "dense<5>", False),
    ],
)
def test_other_numbers_are_the_same_work_unless_a_compiler_makes_something_of_them(
    before: str, after: str, same: bool
) -> None:
    other = MODULE.replace(before, after)
    assert other != MODULE
    assert (work_of(other) == work_of(MODULE)) is same


@pytest.mark.parametrize("deciding", ["stablehlo.while", "stablehlo.power", "stablehlo.custom_call"])
def test_where_a_number_may_decide_how_much_is_done_only_the_same_is_the_same(deciding: str) -> None:
    text = f"{MODULE}%h = {deciding}(%c)\n"
    assert work_of(text) == work_of(text)
    assert work_of(text.replace("0.300000012", "0.9")) != work_of(text)


def measured_with(path: Path, edit: Edit, *, final: bool = False) -> list[Measured]:
    """Measure the unchanged module, as a run does first of all, and then one with an edit."""
    spec = evaluator_spec_of(task(write_all(path, STEP, TRAINING)), final=final)
    executor = InlineExecutor(spec())
    (unchanged,) = evaluate(executor, [Candidate()])
    spec.set_baseline(unchanged.outcome)
    (other,) = evaluate(executor, [Candidate((edit,))])
    return [measured(unchanged.outcome), measured(other.outcome)]


def test_a_larger_learning_rate_takes_exactly_as_long_in_a_search(tmp_path: Path) -> None:
    unchanged, larger = measured_with(tmp_path, ScaleConstant("3", 3.0))
    assert larger.values["error"] != unchanged.values["error"]
    assert larger.values["time_s"] == unchanged.values["time_s"]
    assert unchanged.samples
    assert not larger.samples, "it is not timed"


def test_what_a_compiler_may_make_simpler_is_timed(tmp_path: Path) -> None:
    _, halved = measured_with(tmp_path, ReplaceConstant("3", 0.5))
    assert halved.samples


def test_at_the_end_all_are_timed(tmp_path: Path) -> None:
    _, larger = measured_with(tmp_path, ScaleConstant("3", 3.0), final=True)
    assert larger.samples
