"""Delta debugging finds what is needed, and asks for little."""

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate
from planish.search import ddmin, shrink
from planish.testing.lattice import Lattice, Set


def _run(count: int, will_do: Callable[[set[int]], bool]) -> tuple[tuple[int, ...], int]:
    """Answer until the end; gives what is left, and how often was asked."""
    asking, asked = ddmin(count), 0
    answers: list[bool] | None = None
    try:
        while True:
            batch = next(asking) if answers is None else asking.send(answers)
            answers = [will_do(set(places)) for places in batch]
            asked += len(batch)
    except StopIteration as end:
        return end.value, asked


@given(st.integers(0, 12), st.sets(st.integers(0, 11)))
def test_what_is_needed_is_left_and_no_more(count: int, wanted: set[int]) -> None:
    needed = {place for place in wanted if place < count}
    left, _ = _run(count, needed.issubset)
    assert set(left) == needed
    assert list(left) == sorted(left)


@given(st.lists(st.sets(st.integers(0, 7), min_size=1), min_size=1, max_size=4))
def test_no_place_can_be_left_out_alone_whatever_is_needed(ways: list[set[int]]) -> None:
    def will_do(places: set[int]) -> bool:
        return any(way <= places for way in ways) and len(places) != 4

    left, _ = _run(8, will_do)
    assert left == tuple(range(8)) or will_do(set(left))
    assert not any(will_do(set(left) - {place}) for place in left)


def test_one_of_many_is_found_by_few_questions() -> None:
    left, asked = _run(64, lambda places: 17 in places)
    assert left == (17,)
    assert asked < 30


def test_idle_steps_are_left_out_together() -> None:
    _, asked = _run(16, lambda places: {0, 5, 10, 15} <= places)
    assert asked < 45


class Asked:
    """Needs knob 1; keeps what it was asked."""

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []

    def __call__(self, candidates: Sequence[Candidate]) -> list[bool]:
        self.candidates += candidates
        return [any(isinstance(s, Set) and s.knob == 1 for s in c.steps) for c in candidates]


class Selecting(Lattice):
    """Takes steps out at once; knob 2 needs knob 0."""

    def selected(self, candidate: Candidate, places: Sequence[int]) -> Candidate | None:
        steps = tuple(candidate.steps[place] for place in places)
        knobs = {step.knob for step in steps if isinstance(step, Set)}
        return Candidate(steps) if 2 not in knobs or 0 in knobs else None


def test_candidates_lose_what_is_idle() -> None:
    for space in (Lattice((6, 4, 4)), Selecting((6, 4, 4))):
        asked = Asked()
        assert shrink(space, space.at((2, 3, 1)), asked) == space.at((0, 3, 0))
        assert len(set(asked.candidates)) == len(asked.candidates)
        assert shrink(space, space.start(), asked) == space.start()


def test_a_search_that_is_ended_gives_the_shortest_so_far() -> None:
    space = Selecting((6, 4, 4))
    whole, asked = space.at((2, 3, 1)), Asked()
    assert shrink(space, whole, lambda _: None) == whole
    lengths = [3]
    for most in range(1, 5):
        left = iter(range(most))
        kept = shrink(space, whole, lambda some, left=left: None if next(left, None) is None else asked(some))
        assert asked([kept]) == [True]
        lengths.append(len(kept.steps))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 1


def test_steps_alone_may_not_be_legal() -> None:
    space = Selecting((6, 4, 4))
    whole = space.at((2, 3, 1))
    assert space.selected(whole, (1, 2)) is None
    assert space.selected(whole, (0, 2)) == space.at((2, 0, 1))
    assert Lattice((6, 4, 4)).selected(whole, (1, 2)) == space.at((0, 3, 1))
    assert shrink(
        space, whole, lambda some: [any(s == Set(2, 1) for s in c.steps) for c in some]
    ) == space.at((2, 0, 1))
