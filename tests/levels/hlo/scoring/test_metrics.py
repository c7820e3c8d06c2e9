"""What metrics say of answers, some of which are no numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planish.core import ProgramError
from planish.levels.hlo.scoring.metrics import MetricError, NotFiniteError, check_targets, distance, metric_of
from planish.levels.hlo.workload import Inputs, Workload
from planish.levels.hlo.workload.files import with_metric

NAN = float("nan")


def score(name: str, answers: Any, targets: Any) -> float:
    metric = metric_of(Workload(metric=name, inputs=Inputs()))
    return metric([np.asarray(answers, "f")], [np.asarray(targets)])


def test_an_answer_is_right_where_its_label_is_among_the_largest() -> None:
    answers = [[3, 2, 1, 0], [0, 1, 2, 3], [1, 1, 1, 1], [NAN, 9, 0, 0]]
    assert score("top-1", answers, [0, 3, 0, 1]) == 0.25
    assert score("top-2", answers, [1, 2, 1, 1]) == 0.25
    assert score("top-3", answers, [3, 0, 3, 1]) == 1.0
    with pytest.raises(NotFiniteError, match="none of 1"):
        score("top-1", [[NAN, 1]], [1])


def test_losses_of_tokens_leave_out_what_has_no_label() -> None:
    logits = np.random.default_rng(0).normal(size=(2, 3, 5)).astype("f")
    labels = np.array([[1, 4, -1], [0, 2, 3]])
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    known = [(i, j) for i in range(2) for j in range(3) if labels[i, j] >= 0]
    expected = -np.mean([np.log(shares[i, j, labels[i, j]]) for i, j in known])
    assert score("cross-entropy", logits, labels) == pytest.approx(expected, rel=1e-5)
    assert score("perplexity", logits, labels) == pytest.approx(np.exp(expected), rel=1e-5)
    with pytest.raises(MetricError, match="no answer has a label"):
        score("perplexity", logits, np.full((2, 3), -1))


def test_the_squared_error() -> None:
    assert score("mse", [[1], [3]], [0.0, 1.0]) == 2.5
    with pytest.raises(NotFiniteError, match="1 of 2 answers are not finite"):
        score("mse", [[NAN], [3]], [0.0, 1.0])
    with pytest.raises(NotFiniteError, match="gives inf"):
        score("perplexity", [[0, 1e6]], [0])


def test_outputs_differ_by_a_share_of_their_length() -> None:
    own = np.array([[3.0, 4.0], [0.0, 0.0]], "f")
    assert distance([own], [own]) == 0
    assert distance([own * (1 + 1e-6)], [own]) == 0
    assert distance([own * 1.5], [own]) == 0.25
    assert distance([own * 100], [own]) == 0.5
    assert distance([own + 1], [own]) == pytest.approx((np.sqrt(2) / 5 + 1) / 2, rel=1e-5)


def test_the_result_that_differs_most_counts() -> None:
    one, tokens = np.ones((2, 3), "f"), np.array([[1, 2], [3, 4]])
    assert distance([one, np.array([[1, 2], [3, 5]])], [one, tokens]) == 0.25
    assert distance([one * 0, tokens], [one, tokens]) == 1
    assert distance([], []) == 0


def test_outputs_that_are_no_numbers() -> None:
    own = np.array([[1.0, NAN], [np.inf, 2.0]], "f")
    assert distance([own], [own]) == 0
    assert distance([np.array([[1, 0], [np.inf, 2]], "f")], [own]) == 0.5
    with pytest.raises(NotFiniteError, match="none of 2"):
        distance([own * NAN], [own])
    with pytest.raises(NotFiniteError, match="unchanged module"):
        distance([own * NAN], [own * NAN])


def test_a_function_of_the_user(tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    code.write_text(
        "def worst(answers, targets): return abs(answers[0] - targets[0]).max()\n"
        "def fails(answers, targets): raise ValueError('no\\nway')\n"
        "def nothing(answers, targets): return None\n"
        "def several(answers, targets): return [1.0, 2.0]\n"
        "def text(answers, targets): return 'few'\n"
        "def nan(answers, targets): return float('nan')\nnumber = 3\n"
        "def likelihood(answers, targets): return -0.5\n"
        "import random\n"
        "def dropout(answers, targets): return random.random()\n"
        "def seeded(answers, targets): return random.Random(1).random()\n"
    )

    def metric(name: str) -> float:
        found = metric_of(with_metric(Workload(inputs=Inputs()), f"{code}:{name}"))
        return found([np.array([1.0, 5.0])], [np.array([2.0, 2.0])])

    assert metric("worst") == 3
    with pytest.raises(MetricError, match=r"^'fails' raises ValueError: no$"):
        metric("fails")
    for name, kind in (("nothing", "NoneType"), ("several", "list"), ("text", "str")):
        with pytest.raises(MetricError, match=f"^'{name}' must return a number, but returned a {kind}$"):
            metric(name)
    with pytest.raises(MetricError, match=r"^'likelihood' gives -0\.5, and must not be negative$"):
        metric("likelihood")
    assert metric("seeded") == metric("seeded")
    with pytest.raises(
        MetricError, match=r"^'dropout' gives 0\.\d+, then 0\.\d+ for the same answers: it is random"
    ):
        metric("dropout")
    with pytest.raises(NotFiniteError, match="'nan' gives nan"):
        metric("nan")
    for name in ("number", "missing"):
        with pytest.raises(ProgramError, match="has no function"):
            metric(name)
    code.write_text("worst = 1 / 0\n")
    with pytest.raises(ProgramError, match="fails: ZeroDivisionError"):
        metric("worst")


def test_a_function_of_the_user_may_change_what_it_is_given(tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    code.write_text("def spoil(answers, targets):\n    targets[0][...] = 0\n    return 1\n")
    targets = [np.ones(3)]
    found = metric_of(with_metric(Workload(inputs=Inputs()), f"{code}:spoil"))
    assert found([np.zeros(3)], targets) == 1
    assert targets[0].tolist() == [1, 1, 1], "other candidates are scored by them"


@pytest.mark.parametrize(
    ("metric", "answers", "targets", "said"),
    [
        ("mse", (4, 2), np.zeros((3, 2)), r"\[3, 2\], those of 'mse' of \[4, 2\]"),
        ("top-1", (4, 3), np.zeros((4, 3), int), r"those of 'top-1' of \[4\]"),
        ("top-1", (4, 3), np.zeros(4), "whole numbers"),
        ("perplexity", (2, 3, 5), np.full((2, 3), 5), "up to 5; the module gives 5"),
        ("top-3", (4, 3), np.zeros(4, int), "never wrong"),
    ],
)
def test_targets_of_another_shape(metric: str, answers: tuple[int, ...], targets: Any, said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        check_targets(Workload(metric=metric, inputs=Inputs()), answers, targets)


@pytest.mark.parametrize("odd", [NAN, float("inf"), -float("inf")])
def test_what_is_not_finite_on_one_side_alone_is_an_error(odd: float) -> None:
    right = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    wrong = np.array([[1.0, 2.0], [3.0, odd]], np.float32)
    assert distance([wrong], [right]) == distance([right], [wrong]) == 0.5
    assert distance([wrong], [wrong]) == 0
    assert distance([-wrong], [wrong]) > 0
