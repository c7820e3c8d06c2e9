"""The space of selections, and their features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

import pytest

from planish.core import (
    Candidate,
    CanEvolve,
    CanSeed,
    CanShrink,
    CanStep,
    ScheduleError,
    Step,
    rng,
)
from planish.levels.graph.architecture import Features
from planish.levels.graph.passes import STEPS, ApplyPass, Disable, Selection, Set, selection_of
from planish.levels.graph.space import (
    COUNTS,
    LONGEST,
    PassVocabulary,
    SelectionSpace,
    selection_features,
    selection_schema,
)
from planish.testing.spaces import SpaceConformance

VOCABULARY = PassVocabulary(
    ("onnxscript.optimize", "onnxoptimizer.fuse_bn_into_conv", "onnxscript.add_0"),
    ("ConvAddFusion", "NchwcTransformer", "ConstantFolding"),
    offline=True,
)
SEEDS = (
    Selection(),
    Selection(("onnxscript.optimize",)),
    Selection(disabled=frozenset({"NchwcTransformer"})),
)


class TestSelections(SpaceConformance):
    def space(self) -> SelectionSpace:
        return SelectionSpace(lambda: VOCABULARY, None, lambda _: SEEDS)

    def known_steps(self) -> Mapping[str, type[Step]]:
        return STEPS

    def replay(self, space: object, candidate: Candidate) -> None:
        del space
        chosen = selection_of(candidate)
        assert len(chosen.rewrites) <= LONGEST
        assert {*VOCABULARY.rewrites} >= {*chosen.rewrites}
        assert {*VOCABULARY.disables} >= chosen.disabled


class TestModels(TestSelections):
    """Models are named by the set of their passes: lists of one set make one model."""

    def space(self) -> SelectionSpace:
        return SelectionSpace(lambda: VOCABULARY, lambda names: ",".join(sorted(names)), lambda _: SEEDS[:1])

    def test_equal_states_have_equal_futures(self) -> None:
        """Of the names alone: equal models may be made by lists that leave unequal room for more."""
        space = self.space()
        one, other = (
            Candidate(tuple(map(ApplyPass, order)))
            for order in (VOCABULARY.rewrites, VOCABULARY.rewrites[::-1])
        )
        assert space.state_key(one) == space.state_key(other)
        assert space.state_key(one) != space.state_key(space.extend(one, Disable("ConvAddFusion")))


SETTINGS = (
    *(Set("optimization", level) for level in ("extended", "basic", "none")),
    *(Set("execution", "parallel"), Set("arena", "off"), Set("threads", "1"), Set("threads", "2")),
)


class TestSettings(SpaceConformance):
    """Settings of the session belong to candidates."""

    def space(self) -> SelectionSpace:
        seeds = [Selection(settings=frozenset({each})) for each in SETTINGS]
        return SelectionSpace(lambda: replace(VOCABULARY, settings=SETTINGS), None, lambda _: seeds)

    def known_steps(self) -> Mapping[str, type[Step]]:
        return STEPS

    def replay(self, space: object, candidate: Candidate) -> None:
        del space
        assert {*SETTINGS} >= selection_of(candidate).settings


class TestNothing(TestSelections):
    """A model that no pass changes."""

    def space(self) -> SelectionSpace:
        return SelectionSpace(lambda: PassVocabulary((), ()), None, lambda _: SEEDS[:1])

    def test_mutation_reaches_other_candidates(self) -> None:
        assert self.space().mutate(Candidate(), rng(0)) == Candidate()


def test_it_offers_what_the_searchers_need() -> None:
    space = SelectionSpace(lambda: VOCABULARY, None, lambda _: SEEDS)
    for protocol in (CanStep, CanEvolve, CanShrink, CanSeed):
        assert isinstance(space, protocol)


def test_seeds_need_no_analysis() -> None:
    def late() -> PassVocabulary:
        raise AssertionError("analyzed before the seeds were measured")

    def named(_: tuple[str, ...]) -> str:
        raise AssertionError("rewritten before the seeds were measured")

    space = SelectionSpace(late, named, lambda _: SEEDS)
    assert len({space.state_key(seed) for seed in space.seeds()}) == len(SEEDS)


def test_samples_rewrite_leave_out_and_go_offline() -> None:
    space = SelectionSpace(lambda: VOCABULARY)
    drawn = [selection_of(space.sample(rng(0, index))) for index in range(60)]
    assert {len(each.rewrites) for each in drawn} >= {0, 1, 2, 3}
    assert {len(each.disabled) for each in drawn} >= {1, 2}
    assert {each.offline for each in drawn} == {True, False}


def test_samples_neighbors_and_children_have_settings_where_they_may() -> None:
    space, without = TestSettings().space(), TestSelections().space()
    drawn = [selection_of(space.sample(rng(0, index))) for index in range(80)]
    assert {each for chosen in drawn for each in chosen.settings} == {*SETTINGS}
    assert any(not chosen.settings for chosen in drawn)
    assert not any(selection_of(without.sample(rng(0, index))).settings for index in range(80))
    one, other = (Selection(settings=frozenset({each})).candidate for each in SETTINGS[-2:])
    children = [selection_of(c) for index in range(20) for c in space.crossover(one, other, rng(1, index))]
    assert {each for chosen in children for each in chosen.settings} == {*SETTINGS[-2:]}
    assert Candidate() in {space.mutate(one, rng(2, index)) for index in range(40)}


NUMBERS = {field.name: 0 for field in fields(Features) if field.name != "operations"}
NOTHING = Features(operations={}, **NUMBERS)
MODEL = replace(NOTHING, convolutions=7, depthwise=1, pointwise=3)
CHOSEN = Selection(
    ("onnxscript.optimize", "onnxscript.add_0", "onnxscript.optimize"),
    frozenset({"ConvAddFusion"}),
    offline=True,
    settings=frozenset({Set("arena", "off"), Set("threads", "2")}),
)


def features_of(chosen: Selection, model: Features | None = MODEL) -> dict[str, float]:
    (row,) = selection_features(model, [chosen.candidate])
    return dict(zip(selection_schema().names, row.tolist(), strict=True))


def test_features_of_a_selection_are_what_it_has_where() -> None:
    row = features_of(CHOSEN)
    assert [row[name] for name in ("rewrites", "left out", "offline", "threads")] == [3, 1, 1, 2]
    name = "onnxscript.optimize"
    assert [row[f"{what} {name}"] for what in ("times", "first", "after last")] == [2, 1, 1]
    assert row["without ConvAddFusion"] == 1
    assert (row["arena=off"], row["arena=on"]) == (1, 0)


def test_order_counts() -> None:
    turned = replace(CHOSEN, rewrites=CHOSEN.rewrites[:2])
    assert features_of(turned) != features_of(replace(turned, rewrites=turned.rewrites[::-1]))


def test_features_include_the_model() -> None:
    row = features_of(Selection())
    assert row["convolutions"] == 3  # log2(1 + 7)
    assert row["pointwise_share"] == 0.5
    assert {"parameters", "causal"} <= {*COUNTS}
    assert not any(features_of(Selection(), None).values())


def test_what_is_not_in_order_is_illegal() -> None:
    wrong = Candidate((Disable("ConvAddFusion"), ApplyPass("onnxscript.optimize")))
    with pytest.raises(ScheduleError):
        selection_of(wrong)
    with pytest.raises(ScheduleError):
        selection_features(MODEL, [wrong])
