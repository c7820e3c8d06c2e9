"""Features of selections."""

from dataclasses import fields, replace

import pytest

from planish.core import Candidate, ScheduleError
from planish.levels.graph.architecture import Features
from planish.levels.graph.passes import Disable, Rewrite, Selection, Set, selection_of
from planish.levels.graph.space import COUNTS, selection_features, selection_schema

NUMBERS = {field.name: 0 for field in fields(Features) if field.name != "operations"}
NOTHING = Features(operations={}, **NUMBERS)
MODEL = replace(NOTHING, convolutions=7, depthwise=1, pointwise=3)
CHOSEN = Selection(
    ("onnxscript.optimize", "onnxscript.add_0", "onnxscript.optimize"),
    frozenset({"ConvAddFusion"}),
    offline=True,
    settings=frozenset({Set("arena", "off"), Set("threads", "2")}),
)


def named(chosen: Selection, model: Features | None = MODEL) -> dict[str, float]:
    (row,) = selection_features(model, [chosen.candidate])
    return dict(zip(selection_schema().names, row.tolist(), strict=True))


def test_features_of_a_selection_are_what_it_has_where() -> None:
    row = named(CHOSEN)
    assert [row[name] for name in ("rewrites", "left out", "offline", "threads")] == [3, 1, 1, 2]
    name = "onnxscript.optimize"
    assert [row[f"{what} {name}"] for what in ("times", "first", "after last")] == [2, 1, 1]
    assert row["without ConvAddFusion"] == 1
    assert (row["arena=off"], row["arena=on"]) == (1, 0)


def test_order_counts() -> None:
    turned = replace(CHOSEN, rewrites=CHOSEN.rewrites[:2])
    assert named(turned) != named(replace(turned, rewrites=turned.rewrites[::-1]))


def test_features_include_the_model() -> None:
    row = named(Selection())
    assert row["convolutions"] == 3  # log2(1 + 7)
    assert row["pointwise_share"] == 0.5
    assert {"parameters", "causal"} <= {*COUNTS}
    assert not any(named(Selection(), None).values())


def test_what_is_not_in_order_is_illegal() -> None:
    wrong = Candidate((Disable("ConvAddFusion"), Rewrite("onnxscript.optimize")))
    with pytest.raises(ScheduleError):
        selection_of(wrong)
    with pytest.raises(ScheduleError):
        selection_features(MODEL, [wrong])
