"""What the level adds to the end of a run: scores, the other back end's cross_check, the original module."""

from __future__ import annotations

from pathlib import Path

import pytest

from levels.hlo.workloads import INFERENCE, PREDICT, STEP, TRAINING, task, write_all
from planish.core import (
    Candidate,
    CrossCheck,
    Failed,
    Measured,
    PlanishError,
    evaluate,
    within,
)
from planish.levels.hlo import program_from
from planish.levels.hlo.backend import Executable, XlaBackend
from planish.levels.hlo.edits import CopyOp, DeleteOp, ScaleConstant
from planish.levels.hlo.evaluator import DISAGREE, HloEvaluator, agreement, evaluator_spec_of
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.patch import original, where
from planish.levels.hlo.space import PatchSpace
from planish.measure.executors import InlineExecutor, LocalExecutor

LEVEL = HloLevel()
NOTHING = Candidate()
WILD = Candidate((DeleteOp("0", (("arg1", (("slice", (0, 1), (5, 4)),)),)),))
"""Takes the next pixel for the answer."""
WORSE = Candidate((ScaleConstant("3", 0.0),))


def test_scores_are_of_every_part(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, STEP, TRAINING))
    scores = LEVEL.final_checks(of).heldout_scores
    assert scores is not None
    good, bad = scores([NOTHING, WORSE], LocalExecutor)
    assert isinstance(good, Measured)
    assert isinstance(bad, Measured)
    assert set(good.values) == {"error", "error_validation", "error_final"}
    assert good.values["error_final"] < bad.values["error_final"]


def test_answers_are_scored_beside_those_of_the_unchanged_module(tmp_path: Path) -> None:
    of = task(write_all(tmp_path, PREDICT, INFERENCE))
    scores = LEVEL.final_checks(of).heldout_scores
    assert scores is not None
    found = [each for each in scores([NOTHING, WILD], LocalExecutor) if isinstance(each, Measured)]
    same, wild = (each.values for each in found)
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
    assert isinstance(answer.outcome, Measured)
    assert set(answer.outcome.values) == {"time_s", "error"}
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
    one, other, again = (answer.outcome for answer in evaluate(executor, [WORSE, NOTHING, WORSE]))
    assert isinstance(one, Measured)
    assert isinstance(other, Measured)
    assert isinstance(again, Measured)
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
    ("uid", "told"),
    [
        ("0", ", in step, used in step/one/mul, with a"),
        ("1", ", in step/one/mul, with a"),
        ("2", ", in step/one/add, with a"),
        ("3", ", in step/two/add, with b"),
        ("4", ""),
    ],
)
def test_an_operation_is_described_by_its_layer_and_what_it_works_on(uid: str, told: str) -> None:
    assert where(original(program_from(LAYERS)), uid) == told
