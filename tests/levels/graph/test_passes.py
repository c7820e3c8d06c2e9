"""The catalogue of graph passes, and selections of passes as candidates."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, PlanishError, ProgramError, ScheduleError, candidate_from_json
from planish.levels.graph.passes import (
    EXACT,
    STEPS,
    ApplyPass,
    Disable,
    Offline,
    Set,
    exclusions,
    find_pass,
    passes,
    passes_of_kind,
    selection,
    selection_of,
)


def test_there_are_many_passes_and_each_is_described() -> None:
    assert len(passes()) >= 90
    for each in passes().values():
        assert each.what
        assert not each.what.endswith(".")
        assert each.is_rewriting == (each.kind not in ("rule", "transformer"))


def test_nothing_is_both_in_and_out() -> None:
    assert not passes().keys() & exclusions().keys()


def test_onnxoptimizer_has_these_passes_and_no_others() -> None:
    import onnxoptimizer

    known = {each.name for each in passes_of_kind("onnxoptimizer")} | set(exclusions())
    assert {f"onnxoptimizer.{name}" for name in onnxoptimizer.get_available_passes()} == {
        name for name in known if name.startswith("onnxoptimizer.")
    }


def test_a_pass_matters_where_its_operators_are() -> None:
    fold = find_pass("onnxoptimizer.fuse_bn_into_conv")
    assert fold.may_matter(frozenset({"Conv", "BatchNormalization"}))
    assert not fold.may_matter(frozenset({"Conv"}))
    assert find_pass("onnxscript.optimize").may_matter(frozenset())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("NchwTransformer", r"unknown pass 'NchwTransformer'\. Did you mean 'NchwcTransformer'\?"),
        ("onnxoptimizer.split_init", r"is kept out\. Reason: it cuts the model in two"),
        ("MemcpyTransformer", r"is kept out\. Reason: the runtime runs it always"),
    ],
)
def test_unknown_passes_are_reported(name: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said):
        find_pass(name)


REWRITES = [each.name for each in passes_of_kind(*EXACT, "intent")]
RUNTIME = [each.name for each in passes_of_kind("rule", "transformer")]


SETTINGS = {"arena": "off", "execution": "parallel", "optimization": "basic", "threads": "3"}


@given(
    st.lists(st.sampled_from(REWRITES), max_size=5),
    st.sets(st.sampled_from(RUNTIME)),
    st.booleans(),
    st.sets(st.sampled_from([*SETTINGS])),
)
def test_a_selection_is_read_back_from_json(
    rewrites: list[str], disabled: set[str], offline: bool, settings: set[str]
) -> None:
    chosen = selection(
        rewrites, disabled, offline=offline, settings=[Set(name, SETTINGS[name]) for name in settings]
    )
    assert selection_of(chosen.candidate) == chosen
    again = candidate_from_json(json.loads(chosen.candidate.text), STEPS)
    assert again == chosen.candidate


def test_the_set_part_has_one_order() -> None:
    one = selection(disabled=["NchwcTransformer", "ConvAddFusion"]).candidate
    assert one == selection(disabled=["ConvAddFusion", "NchwcTransformer"]).candidate
    assert str(one) == "without ConvAddFusion; without NchwcTransformer"


def test_where_the_session_optimizes_nothing_nothing_is_left_out() -> None:
    nothing = Set("optimization", "none")
    chosen = selection(disabled=["NchwcTransformer"], settings=[Set("arena", "off"), nothing])
    assert str(chosen.candidate) == "arena=off; optimization=none"
    assert selection_of(chosen.candidate) == selection(settings=chosen.settings)


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ((Disable("NchwcTransformer"), ApplyPass("onnxscript.optimize")), ScheduleError),
        ((Offline(), Disable("NchwcTransformer")), ScheduleError),
        ((Disable("NchwcTransformer"), Disable("NchwcTransformer")), ScheduleError),
        ((ApplyPass("NchwcTransformer"),), ScheduleError),
        ((Disable("onnxscript.optimize"),), ScheduleError),
        ((ApplyPass("onnxscript.optimized"),), PlanishError),
        ((Set("arena", "off"), Offline()), ScheduleError),
        ((Set("execution", "parallel"), Set("arena", "off")), ScheduleError),
        ((Set("arena", "off"), Set("arena", "off")), ScheduleError),
        ((Set("threads", "1"), Set("threads", "2")), ScheduleError),
        ((Disable("NchwcTransformer"), Set("optimization", "none")), ScheduleError),
        ((Set("execution", "paralel"),), PlanishError),
        ((Set("provider", "cuda"),), PlanishError),
        ((Set("execution", "parallel"), Set("threads", "1")), ScheduleError),
        ((Set("threads", "0"),), PlanishError),
    ],
)
def test_what_is_not_canonical_is_refused(steps: tuple[object, ...], error: type[PlanishError]) -> None:
    with pytest.raises(error):
        selection_of(Candidate(steps))  # type: ignore[arg-type]
