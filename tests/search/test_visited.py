"""What counts as proposed before."""

from planish.core import Candidate
from planish.search.proposals import Visited
from search.trail import Go

ONE, TWO = Candidate((Go(1),)), Candidate((Go(1), Go(1)))


class Unnamed:
    def start(self) -> Candidate:
        return Candidate()


class Named(Unnamed):
    """A space that is not walked, and still knows which candidates are the same."""

    def state(self, candidate: Candidate) -> str:
        return str(set(candidate.steps))


def test_candidates_of_one_state_are_one() -> None:
    visited = Visited(Named())
    assert [visited.add(candidate) for candidate in (ONE, TWO, Candidate())] == [True, False, True]


def test_without_states_each_candidate_is_its_own() -> None:
    visited = Visited(Unnamed())
    assert [visited.add(candidate) for candidate in (ONE, TWO, ONE)] == [True, True, False]


def test_changes_that_leave_the_state_do_not_pile_up() -> None:
    visited, lengths = Visited(Named()), list[int]()
    visited.add(ONE)

    def change(candidate: Candidate) -> Candidate:
        lengths.append(len(candidate.steps))
        return candidate.then(Go(2 if len(lengths) == 5 else 1))

    assert visited.fresh(ONE, change) == ONE.then(Go(2))
    assert lengths == [1] * 5
