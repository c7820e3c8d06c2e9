"""Selections of passes as candidates."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, PlanishError, ScheduleError, candidate_from_json
from planish.graph.passes import (
    STEPS,
    Disable,
    Offline,
    Rewrite,
    passes_of_kind,
    selection,
    selection_of,
)

REWRITES = [each.name for each in passes_of_kind("onnxoptimizer", "onnxscript", "intent")]
RUNTIME = [each.name for each in passes_of_kind("rule", "transformer")]


@given(st.lists(st.sampled_from(REWRITES), max_size=5), st.sets(st.sampled_from(RUNTIME)), st.booleans())
def test_a_selection_is_read_back_from_json(rewrites: list[str], disabled: set[str], offline: bool) -> None:
    chosen = selection(rewrites, disabled, offline=offline)
    assert selection_of(chosen.candidate) == chosen
    again = candidate_from_json(json.loads(chosen.candidate.text), STEPS)
    assert again == chosen.candidate


def test_the_set_part_has_one_order() -> None:
    one = selection(disabled=["NchwcTransformer", "ConvAddFusion"]).candidate
    assert one == selection(disabled=["ConvAddFusion", "NchwcTransformer"]).candidate
    assert str(one) == "without ConvAddFusion; without NchwcTransformer"


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ((Disable("NchwcTransformer"), Rewrite("onnxscript.optimize")), ScheduleError),
        ((Offline(), Disable("NchwcTransformer")), ScheduleError),
        ((Disable("NchwcTransformer"), Disable("NchwcTransformer")), ScheduleError),
        ((Rewrite("NchwcTransformer"),), ScheduleError),
        ((Disable("onnxscript.optimize"),), ScheduleError),
        ((Rewrite("onnxscript.optimise"),), PlanishError),
    ],
)
def test_what_is_not_canonical_is_refused(steps: tuple[object, ...], error: type[PlanishError]) -> None:
    with pytest.raises(error):
        selection_of(Candidate(steps))  # type: ignore[arg-type]
