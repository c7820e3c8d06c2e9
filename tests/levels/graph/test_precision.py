"""Passes that change results: off, unless accuracy is an objective or has a tolerance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from levels.graph.models import convolutions
from levels.graph.tasks import make, outcomes_of
from levels.outcomes import failure, measured
from planish.core import Candidate, PlanishError
from planish.levels.graph.feeds import accuracy, make_feeds
from planish.levels.graph.model_protos import node_counts
from planish.levels.graph.passes import ApplyPass, Selection, passes_of_kind
from planish.levels.graph.program import program_from
from planish.levels.graph.rewriting import RewriteError, apply_pass
from planish.levels.graph.space import inexact, seeds_of, space_of
from planish.levels.graph.verification import Tolerance, difference, similarity, tolerance

ALL = tuple(each.name for each in passes_of_kind("intent"))
STATIC = Candidate((ApplyPass("intent.int8_static"),))


def test_precision_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert inexact(make(tmp_path)) == ()
    assert inexact(make(tmp_path, "latency", "accuracy")) == ALL
    assert inexact(make(tmp_path, tolerance="0.02")) == ALL
    named = make(tmp_path, "latency", "accuracy", allow="int8")
    assert inexact(named) == ("intent.int8",)
    assert set(ALL) <= set(space_of(make(tmp_path, tolerance="0.02"), "all").vocabulary.rewrites)
    assert Selection(("intent.int8_static",)) in seeds_of(make(tmp_path, tolerance="0.02"))


def test_without_labels_accuracy_is_how_like_the_original_answers_are(tmp_path: Path) -> None:
    candidates = (Candidate(), STATIC, Candidate((ApplyPass("intent.fp16"),)))
    outcomes = outcomes_of(make(tmp_path, "latency", "accuracy"), *candidates)
    same, static, half = (measured(each).values["accuracy"] for each in outcomes)
    assert same == 1.0
    assert 0.5 < static < 0.9999
    assert static < half < 1.0


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([0] * 3, "there are 3 labels, and the model has 4 answers"),
        ([0] * 8, "there are 8 labels, and the model has 4 answers"),
        ([0, 1, 2, 5], "labels are up to 5, and the model has 5 classes"),
        ([-1] * 4, "labels are up to -1"),
    ],
)
def test_labels_of_other_answers_are_one_clear_line(labels: list[int], said: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((4, 3, 8, 8), np.float32))
    np.save(tmp_path / "labels.npy", np.array(labels))
    options = {"inputs": str(tmp_path / "in.npz"), "labels": str(tmp_path / "labels.npy")}
    with pytest.raises(PlanishError, match=said):
        outcomes_of(make(tmp_path, "latency", "accuracy", **options), Candidate())


def test_labels_below_0_are_left_out() -> None:
    answers = [[np.array([[0.1, 0.9], [0.8, 0.2]])], [np.array([[0.3, 0.7], [0.6, 0.4]])]]
    assert accuracy(np.array([1, 1, -1, 0]), answers) == pytest.approx(2 / 3)


def test_fewer_rows_than_a_batch_are_reported(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((1, 3, 8, 8), np.float32))
    task = make(tmp_path, inputs=str(tmp_path / "in.npz"))
    (port,) = task.program.inputs
    wide = replace(task.program, inputs=(replace(port, shape=(2, *port.shape[1:])),))
    with pytest.raises(
        PlanishError, match=r"in\.npz' does not fill one batch of the model\. Give more rows\."
    ):
        make_feeds(wide, convolutions())


def test_what_is_off_by_more_than_the_tolerance_is_a_wrong_answer(tmp_path: Path) -> None:
    tight, wide = (outcomes_of(make(tmp_path, tolerance=t), STATIC)[0] for t in ("0.00001", "0.9"))
    assert failure(tight) == ("verify", "wrong answer")
    measured(wide)


def test_exact_candidates_are_held_to_exactness_as_ever() -> None:
    assert tolerance(["onnxscript.optimize"], 0.5, by_accuracy=True) == Tolerance()
    assert tolerance(["intent.fp16"], 0.02) == Tolerance(0.02, 0.02, 0.02, by_part=False)
    expected = [np.array([1.0, 2.0], np.float32), np.array([1, 2])]
    found = [np.array([5.0, 2.0], np.float32), np.array([1, 3])]
    assert difference(found, expected, tolerance(["intent.int8"], by_accuracy=True)) == ""
    broken = [np.array([np.nan, 2.0], np.float32), np.array([1, 3])]
    assert "not finite" in difference(broken, expected, tolerance(["intent.int8"], by_accuracy=True))


def test_static_quantization_computes_in_8_bits_and_needs_inputs() -> None:
    feeds = [{"x": np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)}]
    counts = node_counts(apply_pass(convolutions(), "intent.int8_static", feeds))
    assert counts["QuantizeLinear"] >= 3
    with pytest.raises(RewriteError, match="there are no inputs"):
        apply_pass(convolutions(), "intent.int8_static")


def test_similarity_is_of_the_output_that_is_least_alike() -> None:
    expected = [np.array([3.0, 4.0], np.float32), np.array([1, 2, 3, 4])]
    assert similarity(expected, expected) == 1.0
    assert similarity([np.array([3.0, 3.0], np.float32), expected[1]], expected) == pytest.approx(0.8)
    assert similarity([expected[0], np.array([1, 2, 0, 0])], expected) == 0.5


@pytest.mark.parametrize("text", ["0", "-1", "2", "much", "nan"])
def test_a_tolerance_that_is_none_is_reported(text: str, tmp_path: Path) -> None:
    with pytest.raises(PlanishError, match=rf"^tolerance cannot be '{text}'\. Give a share"):
        make(tmp_path, tolerance=text)


def test_a_tolerance_is_read_back(tmp_path: Path) -> None:
    program = make(tmp_path, tolerance="0.02").program
    assert program_from(program.text) == program
    assert program.tolerance == 0.02
