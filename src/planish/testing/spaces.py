"""Conformance suite of spaces: subclass `SpaceConformance` in a test module."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TypeVar

import pytest

from planish.core import (
    Candidate,
    CanEnumerate,
    CanEvolve,
    CanFeaturize,
    CanSample,
    CanSeed,
    CanShrink,
    CanStep,
    Space,
    Step,
    candidate_from_json,
    rng,
)

_Space = TypeVar("_Space")
DRAWS = 20
WALKS = 8
LONGEST = 6


class SpaceConformance:
    """Tests of a space; those of what it does not offer are skipped.

    A subclass named `Test...` overrides the three methods below.
    """

    def space(self) -> Space:
        """Make the space under test; two calls must make equal spaces."""
        raise NotImplementedError

    def known_steps(self) -> Mapping[str, type[Step]]:
        """Return step name to class, as the level lists them."""
        raise NotImplementedError

    def replay(self, space: Space, candidate: Candidate) -> None:
        """Apply a candidate to the program, and raise where that is illegal."""
        raise NotImplementedError

    def test_the_start_is_legal_and_always_the_same(self) -> None:
        start = self.space().start()
        self._check(self.space(), start)
        assert self.space().start() == start

    def test_samples_are_legal_and_belong_to_their_generator(self) -> None:
        space, again = self._offering(CanSample), self._offering(CanSample)
        for index in range(DRAWS):
            candidate = space.sample(rng(1, index))
            self._check(space, candidate)
            assert again.sample(rng(1, index)) == candidate, f"draw {index} differs in an equal space"

    def test_steps_are_unique_and_lead_to_legal_candidates(self) -> None:
        space, again = self._offering(CanStep), self._offering(CanStep)
        for candidate in self._walked(space):
            steps = space.steps(candidate)
            assert len(set(steps)) == len(steps), f"a step is listed twice after {candidate}"
            assert list(again.steps(candidate)) == list(steps), f"the steps after {candidate} differ"
            for step in steps:
                child = space.extend(candidate, step)
                self._check(space, child)
                assert again.extend(candidate, step) == child, f"{step} after {candidate} differs"

    def test_equal_states_have_equal_futures(self) -> None:
        space = self._offering(CanStep)
        seen: dict[str, Candidate] = {}
        for candidate in self._walked(space):
            state = space.state_key(candidate)
            twin = seen.setdefault(state, candidate)
            assert space.state_key(candidate) == state, f"the state of {candidate} is not the same twice"
            assert _futures(space, candidate) == _futures(space, twin), (
                f"{candidate} and {twin} are '{state}'"
            )

    def test_neighbors_are_legal_and_belong_to_their_generator(self) -> None:
        space, again = self._offering(CanEvolve), self._offering(CanEvolve)
        for index in range(DRAWS):
            candidate = space.sample(rng(2, index))
            neighbor = space.mutate(candidate, rng(3, index))
            self._check(space, neighbor)
            assert again.mutate(candidate, rng(3, index)) == neighbor, f"neighbor {index} differs"

    def test_mutation_reaches_other_candidates(self) -> None:
        space = self._offering(CanEvolve)
        start = space.start()
        reached = {space.mutate(start, rng(4, index)) for index in range(DRAWS)}
        assert reached != {start}, f"{DRAWS} mutations of the start all gave the start"

    def test_children_are_legal_and_belong_to_their_generator(self) -> None:
        space, again = self._offering(CanEvolve), self._offering(CanEvolve)
        for index in range(DRAWS):
            parents = space.sample(rng(5, index)), space.sample(rng(6, index))
            children = space.crossover(*parents, rng(7, index))
            assert again.crossover(*parents, rng(7, index)) == children, f"children {index} differ"
            for child in children:
                self._check(space, child)

    def test_seeds_are_legal_unique_and_in_a_fixed_order(self) -> None:
        space, again = self._offering(CanSeed), self._offering(CanSeed)
        seeds = list(space.seeds())
        assert list(again.seeds()) == seeds, "two equal spaces have different seeds"
        assert len(set(seeds)) == len(seeds), "a seed is listed twice"
        for seed in seeds:
            self._check(space, seed)

    def test_shorter_candidates_are_legal_and_lack_one_step(self) -> None:
        space, again = self._offering(CanShrink), self._offering(CanShrink)
        for candidate in self._some(space):
            every = range(len(candidate.steps))
            assert space.selected(candidate, every) == candidate, f"all steps of {candidate} are another one"
            assert space.selected(candidate, ()) == space.start(), f"no step of {candidate} is not the start"
            for index in every:
                rest = [other for other in every if other != index]
                child = space.selected(candidate, rest)
                assert again.selected(candidate, rest) == child, f"{candidate} without step {index} differs"
                if child is not None:
                    self._check(space, child)
                    assert len(child.steps) == len(rest), f"{child} is not one shorter"

    def test_a_focused_space_gives_legal_candidates_that_belong_to_their_generator(self) -> None:
        space, again = self._offering(CanSeed), self._offering(CanSeed)
        shown = [space.sample(rng(10, index)) for index in range(3)]
        focused, same = space.focused(shown), again.focused(shown)
        for index in range(DRAWS):
            candidate = focused.sample(rng(11, index))
            neighbor = focused.mutate(candidate, rng(12, index))
            self._check(space, candidate)
            self._check(space, neighbor)
            assert same.sample(rng(11, index)) == candidate, f"draw {index} differs in an equal space"
            assert same.mutate(candidate, rng(12, index)) == neighbor, f"neighbor {index} differs"

    def test_features_are_as_many_as_named_and_the_same_in_any_company(self) -> None:
        space, again = self._offering(CanFeaturize), self._offering(CanFeaturize)
        candidates = list(self._some(space))
        found = space.features(candidates)
        assert found.shape == (len(candidates), len(space.schema.names))
        assert found.dtype == "float32"
        assert len(set(space.schema.names)) == len(space.schema.names), "two columns have the same name"
        assert (found == found).all(), "a feature is not a number"
        for i, candidate in enumerate(candidates):
            assert (again.features([candidate])[0] == found[i]).all(), f"{candidate} differs alone"

    def test_the_list_is_unique_and_in_a_fixed_order(self) -> None:
        space, again = self._offering(CanEnumerate), self._offering(CanEnumerate)
        listed = list(islice(space.candidates(), 10_000))
        assert listed == list(islice(again.candidates(), 10_000)), "two listings differ"
        assert len({candidate.hash for candidate in listed}) == len(listed), "a candidate is listed twice"
        assert len(listed) <= space.size(), f"more than size() = {space.size()} candidates are listed"
        for candidate in listed[:: max(1, len(listed) // DRAWS)]:
            self._check(space, candidate)

    def test_the_list_holds_what_is_sampled(self) -> None:
        space = self._offering(CanEnumerate)
        if not isinstance(space, CanSample) or space.size() > 10_000:
            pytest.skip("the space is not sampled, or is too large to list")
        listed = set(space.candidates())
        for index in range(DRAWS):
            candidate = space.sample(rng(8, index))
            assert candidate in listed, f"{candidate} is sampled but not listed"

    def _check(self, space: Space, candidate: Candidate) -> None:
        """A candidate can be replayed, and comes back whole from its JSON."""
        self.replay(space, candidate)
        read = candidate_from_json(json.loads(candidate.text), self.known_steps())
        assert read == candidate, f"{candidate} comes back from JSON as {read}"
        assert read.hash == candidate.hash, f"{candidate} changes its hash in JSON"

    def _walked(self, space: CanStep) -> Iterator[Candidate]:
        """Walk at random from the start, several times."""
        for walk in range(WALKS):
            candidate, generator = space.start(), rng(9, walk)
            for _ in range(LONGEST):
                yield candidate
                steps = space.steps(candidate)
                if not steps:
                    break
                candidate = space.extend(candidate, steps[int(generator.integers(len(steps)))])

    def _offering(self, capability: type[_Space]) -> _Space:
        """Make the space, or skip the test where it lacks a capability."""
        space = self.space()
        return (
            space
            if isinstance(space, capability)
            else pytest.skip(f"the space is not a {capability.__name__}")
        )

    def _some(self, space: Space) -> Iterator[Candidate]:
        """List the start, the seeds and samples, of what the space offers."""
        yield space.start()
        yield from space.seeds() if isinstance(space, CanSeed) else ()
        if isinstance(space, CanSample):
            yield from (space.sample(rng(13, index)) for index in range(DRAWS))


def _futures(space: CanStep, candidate: Candidate) -> dict[Step, str]:
    """Return each next step with the state that it leads to."""
    return {step: space.state_key(space.extend(candidate, step)) for step in space.steps(candidate)}
