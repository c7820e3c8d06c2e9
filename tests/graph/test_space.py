"""The space of selections."""

from collections.abc import Mapping

from planish.core import (
    Candidate,
    CanEvolve,
    CanSeed,
    CanShrink,
    CanStep,
    Step,
    rng,
)
from planish.graph.passes import STEPS, Disable, Rewrite, Selection, selection_of
from planish.graph.space import LONGEST, Letters, SelectionSpace
from planish.testing.spaces import SpaceConformance

LETTERS = Letters(
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
        return SelectionSpace(lambda: LETTERS, None, SEEDS)

    def known_steps(self) -> Mapping[str, type[Step]]:
        return STEPS

    def replay(self, space: object, candidate: Candidate) -> None:
        del space
        chosen = selection_of(candidate)
        assert len(chosen.rewrites) <= LONGEST
        assert {*LETTERS.rewrites} >= {*chosen.rewrites}
        assert {*LETTERS.disables} >= chosen.disabled


class TestModels(TestSelections):
    """Models are named by the set of their passes: lists of one set make one model."""

    def space(self) -> SelectionSpace:
        return SelectionSpace(lambda: LETTERS, lambda names: ",".join(sorted(names)), SEEDS[:1])

    def test_equal_states_have_equal_futures(self) -> None:
        """Of the names alone: equal models may be made by lists that leave unequal room for more."""
        space = self.space()
        one, other = (
            Candidate(tuple(map(Rewrite, order))) for order in (LETTERS.rewrites, LETTERS.rewrites[::-1])
        )
        assert space.state(one) == space.state(other)
        assert space.state(one) != space.state(space.extend(one, Disable("ConvAddFusion")))


class TestNothing(TestSelections):
    """A model that no pass changes."""

    def space(self) -> SelectionSpace:
        return SelectionSpace(lambda: Letters((), ()), None, SEEDS[:1])

    def test_mutation_reaches_other_candidates(self) -> None:
        assert self.space().mutate(Candidate(), rng(0)) == Candidate()


def test_it_offers_what_the_searchers_need() -> None:
    space = SelectionSpace(lambda: LETTERS, None, SEEDS)
    for protocol in (CanStep, CanEvolve, CanShrink, CanSeed):
        assert isinstance(space, protocol)


def test_seeds_need_no_analysis() -> None:
    def late() -> Letters:
        raise AssertionError("analysed before the seeds were measured")

    def named(_: tuple[str, ...]) -> str:
        raise AssertionError("rewritten before the seeds were measured")

    space = SelectionSpace(late, named, SEEDS)
    assert len({space.state(seed) for seed in space.seeds()}) == len(SEEDS)


def test_samples_rewrite_leave_out_and_go_offline() -> None:
    space = SelectionSpace(lambda: LETTERS)
    drawn = [selection_of(space.sample(rng(0, index))) for index in range(60)]
    assert {len(each.rewrites) for each in drawn} >= {0, 1, 2, 3}
    assert {len(each.disabled) for each in drawn} >= {1, 2}
    assert {each.offline for each in drawn} == {True, False}
