"""The lists that classes begin with: the paper's table 4, in this catalogue's terms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from levels.graph.architecture.nets import CASES, EXPECTED, Sketch, small_model
from levels.graph.models import constant, model, weight, write
from planish.core import Candidate
from planish.levels.graph.architecture import recognise
from planish.levels.graph.architecture.recognition import CLASSES
from planish.levels.graph.passes import find_pass, selection_of
from planish.levels.graph.source import read_model
from planish.levels.graph.starting_lists import (
    LEFT_OUT,
    ORDERS,
    class_lists,
    class_selection,
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
    chosen = selection_of(starting_list(recognise(small_model(name, exporter)), order))
    assert len(chosen.rewrites) <= LONGEST
    assert not any(find_pass(each).is_intended for each in chosen.rewrites)
    assert chosen.disabled


def test_a_mixture_begins_with_the_passes_of_all_its_classes() -> None:
    one, other, both = (class_selection(symbols) for symbols in (["RN"], ["SSD"], ["RN", "SSD"]))
    assert both.disabled == one.disabled & other.disabled
    assert set(both.rewrites) == {*one.rewrites, *other.rewrites}
    found = selection_of(starting_list(recognise(small_model("ssd-resnet50"))))
    assert found.disabled >= both.disabled


def test_what_fits_no_class_begins_as_it_is() -> None:
    sketch = Sketch()
    assert starting_list(recognise(sketch.model(sketch.op("Abs", "x")))) == Candidate()


def test_transformers_begin_without_what_made_them_slower() -> None:
    chosen = selection_of(starting_list(recognise(small_model("bert-4x256"))))
    assert "SkipLayerNormFusion" in chosen.disabled
    assert "MatMulAddFusion" not in chosen.disabled


@pytest.mark.parametrize("name", EXPECTED)
def test_the_order_does_not_change_what_is_selected(name: str) -> None:
    found = recognise(small_model(name, "dynamo-raw"))
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
    for place in range(6):
        before, wide = (f"a{place}", 8) if place else ("x", 3)
        weights += [weight(f"p{place}", 8, wide, 1, 1), weight(f"d{place}", 8, 1, 3, 3)]
        nodes += [
            node("Conv", [before, f"p{place}"], [f"b{place}"]),
            node("Clip", [f"b{place}", "lo", "hi"], [f"c{place}"]),
            node("Conv", [f"c{place}", f"d{place}"], [f"a{place + 1}"], group=8, pads=[1] * 4),
        ]
    return model([*nodes, node("Relu", ["a6"], ["y"])], weights, opset=opset)


@pytest.mark.parametrize(("opset", "there"), [(13, False), (17, True)])
def test_a_list_has_no_pass_whose_operators_the_opset_lacks(opset: int, there: bool, tmp_path: Path) -> None:
    lists = class_lists(read_model(write(depthwise(opset), tmp_path / "net.onnx"), {}))
    assert len(lists) == 2
    assert all(("onnxscript.fuse_hardswish" in each.rewrites) is there for each in lists)
