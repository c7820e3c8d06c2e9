"""What is learnt of classes from trials: effects that were put in come out, and evidence counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, Step
from planish.levels.graph.passes import Disable, Offline, Rewrite, selection, selection_of
from planish.levels.graph.starting_lists import FAR, RidgeRow, effects, learn_lists, learned_list

GOOD = Rewrite("onnxscript.optimize")
FAIR = Rewrite("onnxscript.fold_constants")
IDLE = Rewrite("onnxscript.inline")
SLOW = Disable("NchwcTransformer")
FAST = Disable("SkipLayerNormFusion")
TRUTH: dict[Step, float] = {GOOD: -0.5, FAIR: -0.2, IDLE: 0.0, SLOW: 0.7, FAST: -0.15}


def candidate(*steps: Step) -> Candidate:
    rewrites = [s.name for s in steps if isinstance(s, Rewrite)]
    out = [s.name for s in steps if isinstance(s, Disable)]
    return selection(rewrites, out, offline=Offline() in steps).candidate


def trials(program: str, count: int, seed: int = 0, noise: float = 0.02) -> list[RidgeRow]:
    """Draw candidates whose steps do what `TRUTH` says."""
    random = np.random.default_rng(seed)
    records: list[RidgeRow] = []
    for _ in range(count):
        steps = [step for step in TRUTH if random.random() < 0.5]
        change = sum(TRUTH[step] for step in steps) + random.normal(0, noise)
        records.append(RidgeRow(program, ("bert",), candidate(*steps), math.exp(change)))
    return records


def test_effects_are_found_again() -> None:
    found = effects([*trials("a", 60), *trials("b", 60, 1), *trials("c", 60, 2)])
    assert list(found) == [GOOD, FAIR, FAST, IDLE, SLOW]
    for step, truth in TRUTH.items():
        assert found[step].change == pytest.approx(truth, abs=0.05 + 0.3 * abs(truth))
        assert abs(found[step].change) <= abs(truth) + 0.05
        assert found[step].models == 3


@given(st.integers(1, 4))
def test_more_models_make_an_effect_more_believed(models: int) -> None:
    few = effects([r for n in range(models) for r in trials(str(n), 40, noise=0)])
    more = effects([r for n in range(models + 1) for r in trials(str(n), 40, noise=0)])
    assert TRUTH[GOOD] < more[GOOD].change < few[GOOD].change < 0


def test_more_trials_make_an_effect_more_believed() -> None:
    few, more = (effects(trials("a", count, noise=0)) for count in (4, 100))
    assert more[GOOD].change < few[GOOD].change < 0


def test_a_list_has_what_helps_and_lacks_what_does_not() -> None:
    (known,) = learn_lists([*trials("a", 60), *trials("b", 60, 1)]).values()
    steps = set(known.best.steps)
    assert {GOOD, FAIR, FAST} <= steps
    assert SLOW not in steps
    assert (known.name, known.models, known.trials) == ("bert", 2, 120)
    assert known.expected < 0.7


def test_rewriting_passes_stand_where_they_stood_in_good_lists() -> None:
    records = [
        RidgeRow("a", ("bert",), candidate(FAIR, GOOD), 0.5),
        RidgeRow("a", ("bert",), candidate(FAIR, IDLE, GOOD), 0.6),
        RidgeRow("a", ("bert",), candidate(GOOD), 0.8),
        RidgeRow("a", ("bert",), candidate(FAIR), 0.8),
    ]
    chosen = selection_of(learn_lists(records)["bert"].best).rewrites
    assert chosen == (FAIR.name, GOOD.name)


def test_what_fails_is_not_begun_with() -> None:
    records = [
        *(RidgeRow("a", ("bert",), candidate(IDLE, GOOD), None) for _ in range(3)),
        RidgeRow("a", ("bert",), candidate(IDLE), 0.3),
        RidgeRow("a", ("bert",), candidate(FAIR), 0.8),
    ]
    known = learn_lists(records)["bert"]
    assert known.effects[IDLE].fails
    assert set(known.best.steps) == {FAIR}


def test_where_nothing_helps_a_network_begins_as_it_is() -> None:
    known = learn_lists(
        [RidgeRow("a", ("gpt",), candidate(SLOW), 1.5), RidgeRow("a", ("gpt",), candidate(IDLE), 1.0)]
    )
    assert known["gpt"].best == Candidate()
    assert known["gpt"].expected == 1.0


def test_lists_are_ranked_by_what_is_expected_of_them() -> None:
    known = learn_lists([*trials("a", 60), *trials("b", 60, 1)])["bert"]
    assert len(known.ranked) == len(set(known.ranked)) == 10
    assert known.best == known.ranked[0]
    worst = [sum(TRUTH[step] for step in listed.steps) for listed in known.ranked]
    assert max(worst) < -0.1


def test_one_lucky_trial_is_not_believed_against_many() -> None:
    lucky = RidgeRow("z", ("bert",), candidate(IDLE), 0.6)
    known = learn_lists([lucky, *(RidgeRow(p, ("bert",), candidate(GOOD), 0.65) for p in "abcdef")])
    assert known["bert"].best == candidate(GOOD)


def test_a_mixture_counts_for_its_classes_and_is_preferred() -> None:
    both = RidgeRow("a", ("ssd", "resnet"), candidate(GOOD), 0.5)
    alone = RidgeRow("b", ("resnet",), candidate(FAIR), 0.5)
    lists = learn_lists([both, alone])
    assert set(lists) == {"resnet", "ssd", "resnet+ssd"}
    assert lists["resnet"].models == 2

    def name_for(*classes: str) -> str:
        found = learned_list(lists, classes)
        return found.name if found else ""

    assert name_for("resnet", "ssd") == "resnet+ssd"
    assert name_for("ssd", "mobilenet") == "ssd"
    assert name_for("unet") == ""


def test_an_outlier_counts_for_no_more_than_what_is_far() -> None:
    records = [RidgeRow("a", ("bert",), candidate(SLOW), 1e9), RidgeRow("a", ("bert",), candidate(IDLE), 1.0)]
    assert 0 < effects(records)[SLOW].change < FAR


def test_no_trials_teach_nothing() -> None:
    assert not learn_lists([])
    assert learn_lists([RidgeRow("a", ("bert",), candidate(GOOD), None)])["bert"].best == Candidate()


@given(st.permutations(trials("a", 12) + trials("b", 12, 1)))
def test_the_order_of_trials_does_not_matter(records: list[RidgeRow]) -> None:
    found = learn_lists(records)["bert"]
    expected = learn_lists(trials("a", 12) + trials("b", 12, 1))["bert"]
    assert found.best == expected.best
    assert found.expected == pytest.approx(expected.expected)
