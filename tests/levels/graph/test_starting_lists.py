"""Lists that classes begin with: the paper's table 4, and what trials on other models showed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from levels.graph.architecture.nets import CASES, EXPECTED, Sketch, small_model
from levels.graph.models import constant, model, weight, write
from planish.core import Candidate, Step
from planish.levels.graph.architecture import recognize
from planish.levels.graph.architecture.recognition import CLASSES
from planish.levels.graph.passes import ApplyPass, Disable, Offline, find_pass, selection, selection_of
from planish.levels.graph.source import read_model
from planish.levels.graph.starting_lists import (
    FAR,
    LEFT_OUT,
    ORDERS,
    RidgeRow,
    class_lists,
    class_selection,
    effects,
    learn_lists,
    learned_list,
    starting_list,
    table4,
)

LONGEST = 8


def test_the_table_is_the_papers() -> None:
    rows = table4()
    assert len(rows) == 28
    assert [row.name for row in rows] == sorted((row.name for row in rows), key=str)
    counts = {
        symbol: sum(symbol in row.classes for row in rows) for symbol in ("BL", "RN", "MN", "SSD", "BR", "AD")
    }
    assert counts == {"BL": 6, "RN": 13, "MN": 12, "SSD": 10, "BR": 6, "AD": 6}


def test_every_pass_stands_for_something_or_a_reason_is_given() -> None:
    for row in table4():
        for name in row.rewrites:
            assert find_pass(name).is_rewriting
        for name in row.runtime:
            assert not find_pass(name).is_rewriting
        assert row.rewrites or row.runtime or row.note
        assert row.note or not row.extra_classes


def test_orders_and_exceptions_name_what_there_is() -> None:
    names = {row.name for row in table4()}
    assert all(names.issuperset(order) for order in ORDERS)
    runtime = {name for row in table4() for name in row.runtime}
    assert all(runtime.issuperset(out) for out in LEFT_OUT.values())
    symbols = {symbol for row in table4() for symbol in row.classes}
    assert symbols.issuperset(kind.paper for kind in CLASSES.values())


@pytest.mark.parametrize(("name", "exporter"), CASES)
@pytest.mark.parametrize("order", [0, 1])
def test_a_starting_list_is_a_legal_candidate_without_passes_that_change_results(
    name: str, exporter: str, order: int
) -> None:
    chosen = selection_of(starting_list(recognize(small_model(name, exporter)), order))
    assert len(chosen.rewrites) <= LONGEST
    assert not any(find_pass(each).is_intended for each in chosen.rewrites)
    assert chosen.disabled


def test_a_mixture_begins_with_the_passes_of_all_its_classes() -> None:
    one, other, both = (class_selection(symbols) for symbols in (["RN"], ["SSD"], ["RN", "SSD"]))
    assert both.disabled == one.disabled & other.disabled
    assert set(both.rewrites) == {*one.rewrites, *other.rewrites}
    found = selection_of(starting_list(recognize(small_model("ssd-resnet50"))))
    assert found.disabled >= both.disabled


def test_what_fits_no_class_begins_as_it_is() -> None:
    sketch = Sketch()
    assert starting_list(recognize(sketch.model(sketch.op("Abs", "x")))) == Candidate()


def test_transformers_begin_without_what_made_them_slower() -> None:
    chosen = selection_of(starting_list(recognize(small_model("bert-4x256"))))
    assert "SkipLayerNormFusion" in chosen.disabled
    assert "MatMulAddFusion" not in chosen.disabled


@pytest.mark.parametrize("name", EXPECTED)
def test_the_order_does_not_change_what_is_selected(name: str) -> None:
    found = recognize(small_model(name, "dynamo-raw"))
    first, second = (selection_of(starting_list(found, order)) for order in (0, 1))
    assert sorted(first.rewrites) == sorted(second.rewrites)
    assert first.disabled == second.disabled


def depthwise(opset: int) -> onnx.ModelProto:
    """Make convolutions as MobileNet has them."""
    node, weights = (
        helper.make_node,
        [constant("lo", np.zeros((), "f4")), constant("hi", np.full((), 6, "f4"))],
    )
    nodes: list[onnx.NodeProto] = []
    for index in range(6):
        before, wide = (f"a{index}", 8) if index else ("x", 3)
        weights += [weight(f"p{index}", 8, wide, 1, 1), weight(f"d{index}", 8, 1, 3, 3)]
        nodes += [
            node("Conv", [before, f"p{index}"], [f"b{index}"]),
            node("Clip", [f"b{index}", "lo", "hi"], [f"c{index}"]),
            node("Conv", [f"c{index}", f"d{index}"], [f"a{index + 1}"], group=8, pads=[1] * 4),
        ]
    return model([*nodes, node("Relu", ["a6"], ["y"])], weights, opset=opset)


@pytest.mark.parametrize(("opset", "there"), [(13, False), (17, True)])
def test_a_list_has_no_pass_whose_operators_the_opset_lacks(opset: int, there: bool, tmp_path: Path) -> None:
    lists = class_lists(read_model(write(depthwise(opset), tmp_path / "net.onnx"), {}))
    assert len(lists) == 2
    assert all(("onnxscript.fuse_hardswish" in each.rewrites) is there for each in lists)


GOOD = ApplyPass("onnxscript.optimize")
FAIR = ApplyPass("onnxscript.fold_constants")
IDLE = ApplyPass("onnxscript.inline")
SLOW = Disable("NchwcTransformer")
FAST = Disable("SkipLayerNormFusion")
TRUTH: dict[Step, float] = {GOOD: -0.5, FAIR: -0.2, IDLE: 0.0, SLOW: 0.7, FAST: -0.15}


def candidate(*steps: Step) -> Candidate:
    rewrites = [s.name for s in steps if isinstance(s, ApplyPass)]
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
