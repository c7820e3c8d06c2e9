"""The space of pass lists, and their features."""

from collections import Counter
from collections.abc import Mapping

import pytest

from planish.core import (
    Candidate,
    CanEvolve,
    CanSeed,
    CanShrink,
    CanStep,
    PlanishError,
    Step,
    candidate_from_json,
    rng,
)
from planish.levels.llvm.ir.features import FEATURES
from planish.levels.llvm.passes.catalogue import PassElement, elements, load_coreset
from planish.levels.llvm.passes.pipeline import Pass, candidate_of, passes_of, print_pipeline
from planish.levels.llvm.passes.space import SPACES, ListShape, PassSpace, pass_space
from planish.testing.spaces import SpaceConformance

ALL = tuple(elements().values())
FEW = tuple(elements()[text] for text in ("adce", "gvn", "licm<allowspeculation>", "default<Oz>"))


class PassConformance(SpaceConformance):
    """What a pass space must do, whatever its elements."""

    def space(self) -> PassSpace:
        raise NotImplementedError

    def known_steps(self) -> Mapping[str, type[Step]]:
        return {"Pass": Pass}

    def replay(self, space: object, candidate: Candidate) -> None:
        assert isinstance(space, PassSpace)
        passes = passes_of(candidate)
        print_pipeline(passes)
        assert len(passes) <= space.longest
        assert {e.text for e in space.elements} >= set(passes)


class TestPasses(PassConformance):
    def space(self) -> PassSpace:
        return pass_space("passes", ALL)


class TestUniform(PassConformance):
    def space(self) -> PassSpace:
        return pass_space("uniform", ALL)


class TestSafe(PassConformance):
    def space(self) -> PassSpace:
        return pass_space("safe", ALL)


class TestTheSmallest(PassConformance):
    def space(self) -> PassSpace:
        return PassSpace(FEW[:1], longest=1, seeds=[("adce",), ("gvn",), ("adce", "adce")])


class TestFocused(PassConformance):
    def space(self) -> PassSpace:
        return pass_space("passes", ALL, longest=3).focused([candidate_of(["adce", "gvn"])])


def test_it_offers_what_every_searcher_needs() -> None:
    space = pass_space("passes", ALL)
    for capability in (CanEvolve, CanSeed, CanShrink, CanStep):
        assert isinstance(space, capability)


def test_a_candidate_is_its_passes() -> None:
    passes = ("gvn", "default<Oz>", "gvn")
    candidate = candidate_of(passes)
    assert passes_of(candidate) == passes
    assert (
        candidate.text == '[["Pass",{"name":"gvn"}],["Pass",{"name":"default<Oz>"}],["Pass",{"name":"gvn"}]]'
    )
    assert candidate_from_json([["Pass", {"name": text}] for text in passes], {"Pass": Pass}) == candidate
    assert str(candidate) == "gvn; default<Oz>; gvn"


def test_a_step_of_another_level_is_no_pass() -> None:
    with pytest.raises(TypeError, match="expected a pass"):
        passes_of(Candidate((Step(),)))


def test_an_unknown_space_names_the_nearest() -> None:
    with pytest.raises(PlanishError, match=r"level 'llvm' has no space 'uniforn'\. Did you mean 'uniform'\?"):
        pass_space("uniforn", ALL)


def test_it_is_walked_element_by_element_to_the_longest() -> None:
    space = PassSpace(FEW, longest=2)
    candidate = space.start()
    assert candidate == Candidate()
    for _ in range(2):
        assert [str(step) for step in space.steps(candidate)] == [element.text for element in FEW]
        candidate = space.extend(candidate, space.steps(candidate)[1])
    assert passes_of(candidate) == ("gvn", "gvn")
    assert not space.steps(candidate)


@pytest.mark.parametrize("name", SPACES)
def test_the_seeds_are_oz_and_the_coreset(name: str) -> None:
    seeds = [passes_of(seed) for seed in pass_space(name, ALL).seeds()]
    tier_2 = {element.text for element in ALL if element.tier == 2}
    coreset = [p for p in load_coreset() if name != "safe" or not tier_2 & set(p)]
    assert seeds == [("default<Oz>",), *coreset]
    assert len(seeds) > 5


def test_without_oz_the_seeds_begin_with_o2() -> None:
    newer = [element for element in ALL if element.text not in ("default<Oz>", "default<Os>")]
    seeds = [passes_of(seed) for seed in pass_space("passes", newer).seeds()]
    assert seeds[0] == ("default<O2>",)
    assert seeds[1:] == [p for p in load_coreset() if not {"default<Oz>", "default<Os>"} & set(p)]


def test_safe_draws_from_the_first_tier_alone() -> None:
    space = pass_space("safe", ALL)
    drawn = {text for i in range(300) for text in passes_of(space.sample(rng(0, i)))}
    assert {elements()[text].tier for text in drawn} == {1}


def test_uniform_draws_lengths_and_passes_evenly() -> None:
    """Within five standard errors."""
    space = PassSpace(FEW, longest=4)
    samples = [passes_of(space.sample(rng(1, i))) for i in range(2_000)]
    lengths = Counter(map(len, samples))
    assert set(lengths) == {1, 2, 3, 4}
    assert all(abs(count - 500) < 5 * (2_000 * 0.25 * 0.75) ** 0.5 for count in lengths.values())
    drawn = Counter(text for passes in samples for text in passes)
    assert all(abs(drawn[e.text] - drawn.total() / 4) < 5 * (drawn.total() * 0.25 * 0.75) ** 0.5 for e in FEW)


def test_passes_are_drawn_by_weight() -> None:
    space = PassSpace(FEW, weights={"adce": 3.0, "gvn": 1.0})
    drawn = Counter(text for i in range(500) for text in passes_of(space.sample(rng(2, i))))
    assert set(drawn) == {"adce", "gvn"}
    assert abs(drawn["gvn"] - drawn.total() / 4) < 5 * (drawn.total() * 0.25 * 0.75) ** 0.5


def test_what_the_coreset_holds_often_is_drawn_often() -> None:
    space = pass_space("passes", ALL)
    drawn = Counter(text for i in range(2_000) for text in passes_of(space.sample(rng(3, i))))
    assert drawn["gvn-hoist"] > 3 * drawn["dfa-jump-threading"] > 0
    assert set(drawn) == {element.text for element in ALL}


OZ = ("default<Oz>", "loop-fusion")


@pytest.mark.parametrize(
    ("shape", "index"), [(ListShape(1.0, OZ, "first"), 0), (ListShape(1.0, OZ, "last"), -1)]
)
def test_an_anchor_stands_in_its_place(shape: ListShape, index: int) -> None:
    space = PassSpace(FEW, weights={"adce": 1.0}, longest=5, shapes=[shape])
    samples = [passes_of(space.sample(rng(4, i))) for i in range(200)]
    assert {passes[index] for passes in samples} == {"default<Oz>"}, "the other anchor is not of this space"
    assert {len(passes) for passes in samples} == {1, 2, 3, 4, 5}
    assert all(passes.count("default<Oz>") == 1 for passes in samples)


def test_an_anchor_stands_anywhere() -> None:
    space = PassSpace(FEW, weights={"adce": 1.0}, longest=3, shapes=[ListShape(1.0, ("default<Oz>",))])
    samples = {passes_of(space.sample(rng(5, i))) for i in range(200)}
    assert {passes.index("default<Oz>") for passes in samples if len(passes) == 3} == {0, 1, 2}


def test_shapes_are_drawn_by_weight_and_need_their_anchors() -> None:
    shapes = [
        ListShape(1.0, ("gvn",), "first"),
        ListShape(3.0, ("default<Oz>",), "first"),
        ListShape(9.0, ("sink",)),
    ]
    space = PassSpace(FEW, weights={"adce": 1.0}, shapes=shapes)
    heads = Counter(passes_of(space.sample(rng(6, i)))[0] for i in range(2_000))
    assert set(heads) == {"gvn", "default<Oz>"}
    assert abs(heads["gvn"] - 500) < 5 * (2_000 * 0.25 * 0.75) ** 0.5
    assert PassSpace(FEW, shapes=shapes[2:]).sample(rng(7)).steps


def test_mutation_replaces_inserts_deletes_and_swaps() -> None:
    space = PassSpace(FEW, longest=3)
    here = candidate_of(["adce", "gvn"])
    reached = {passes_of(space.mutate(here, rng(8, i))) for i in range(300)}
    assert {("adce",), ("gvn",), ("gvn", "adce"), ("adce", "adce"), ("default<Oz>", "adce", "gvn")} <= reached
    assert {len(passes) for passes in reached} == {1, 2, 3}
    full = candidate_of(["adce"] * 3)
    assert {len(space.mutate(full, rng(9, i)).steps) for i in range(100)} == {2, 3}
    assert {len(space.mutate(space.start(), rng(10, i)).steps) for i in range(20)} == {1}


def test_children_have_the_front_of_one_and_the_end_of_the_other() -> None:
    space = PassSpace(FEW, longest=5)
    a, b = candidate_of(["adce"] * 4), candidate_of(["gvn"] * 3)
    for i in range(100):
        first, second = (passes_of(child) for child in space.crossover(a, b, rng(11, i)))
        assert list(first) == sorted(first)
        assert list(second) == sorted(second, reverse=True)
        assert len(first) + len(second) <= 7
        assert max(len(first), len(second)) <= 5


def test_passes_are_selected_by_their_places() -> None:
    space, whole = PassSpace(FEW), candidate_of(["adce", "gvn", "default<Oz>"])
    lists = [passes_of(space.selected(whole, places)) for places in ((1, 2), (0, 2), (0,), ())]
    assert lists == [("gvn", "default<Oz>"), ("adce", "default<Oz>"), ("adce",), ()]


def test_focus_takes_half_of_the_draws() -> None:
    space = PassSpace(FEW).focused([candidate_of(["gvn", "adce", "gvn"]), candidate_of(["sink", "gvn"])])
    drawn = Counter(text for i in range(500) for text in passes_of(space.sample(rng(12, i))))
    share = {"gvn": 0.5 / 4 + 0.5 * 3 / 4, "adce": 0.5 / 4 + 0.5 / 4, "default<Oz>": 0.5 / 4}
    for text, expected in share.items():
        error = (drawn.total() * expected * (1 - expected)) ** 0.5
        assert abs(drawn[text] - drawn.total() * expected) < 5 * error
    assert space.seeds() == PassSpace(FEW).seeds()


def test_focus_on_nothing_changes_nothing() -> None:
    space = PassSpace(FEW)
    assert space.focused([]) is space
    assert space.focused([candidate_of(["sink"])]) is space


ONE = """define i32 @f(i32 %a) {
  %b = add i32 %a, 1
  ret i32 %b
}
"""
LIST = ("adce", "gvn", "adce", "default<Oz>")


def features_of(*lists: tuple[str, ...], ir: str = ONE) -> list[dict[str, float]]:
    space = PassSpace(tuple(elements().values()), ir=ir)
    found = space.features([candidate_of(texts) for texts in lists])
    return [dict(zip(space.schema.names, row.tolist(), strict=True)) for row in found]


def test_features_of_a_list_are_what_it_has_where() -> None:
    (row,) = features_of(LIST)
    assert (row["passes"], row["pipelines"], row["different"]) == (4, 1, 3)
    assert (row["times adce"], row["first adce"], row["after last adce"]) == (2, 1, 2)
    assert (row["times gvn"], row["first gvn"], row["after last gvn"]) == (1, 2, 3)
    assert (row["times dce"], row["first dce"], row["after last dce"]) == (0, 0, 0)


def test_order_counts() -> None:
    one, other = features_of(("adce", "gvn"), ("gvn", "adce"))
    assert one != other


def test_features_of_the_module_are_in_each_row() -> None:
    one, other = features_of((), LIST)
    of_module = [name for name in one if name.startswith("AutoPhase")]
    assert len(of_module) == len(FEATURES) == 56
    assert all(one[name] == other[name] for name in of_module)
    assert one["AutoPhase 2: TotalInsts"] > 0
    (nothing,) = features_of((), ir="")
    assert not any(nothing.values())


def test_a_focused_space_tells_the_same() -> None:
    space = PassSpace(tuple(elements().values()), ir=ONE)
    focused = space.focused([candidate_of(LIST)])
    assert (space.features([candidate_of(LIST)]) == focused.features([candidate_of(LIST)])).all()


def test_a_pass_that_is_in_no_catalogue_only_counts() -> None:
    own = PassElement("my-pass", "function", 2, "mine")
    space = PassSpace([own])
    (row,) = space.features([candidate_of(["my-pass", "my-pass"])])
    assert row[0] == 2
    assert row.sum() == 3  # and one of different passes
