"""DEAP's sorting, as it is used, against the definition of its ranks and distances."""

from hypothesis import given
from hypothesis import strategies as st

from planish.core import dominates
from planish.search.nondominated import select

COSTS = st.integers(1, 3).flatmap(
    lambda n: st.lists(st.tuples(*[st.integers(0, 5).map(float)] * n), max_size=24)
)


def _ranks(costs: list[tuple[float, ...]]) -> list[int]:
    """Peel one front after another."""
    ranks = [-1] * len(costs)
    for rank in range(len(costs)):
        left = [place for place, known in enumerate(ranks) if known < 0]
        for place in left:
            if not any(dominates(costs[other], costs[place]) for other in left):
                ranks[place] = rank
    return ranks


@given(COSTS, st.integers(1, 30))
def test_the_first_fronts_are_selected_and_of_the_last_the_least_crowded(
    costs: list[tuple[float, ...]], most: int
) -> None:
    ranks = _ranks(costs)
    selected = select(costs, most)
    assert len({one.place for one in selected}) == len(selected) == min(most, len(costs))
    assert [ranks[one.place] for one in selected] == sorted(ranks)[:most]
    ordered = [(ranks[one.place], -one.crowding) for one in selected]
    assert ordered == sorted(ordered)
    everything = {one.place: one.crowding for one in select(costs, len(costs))}
    left = [(ranks[place], -crowding) for place, crowding in everything.items()]
    assert ordered == sorted(left)[:most], "one that was left out is less crowded"


def test_crowding_is_the_mean_gap_between_the_neighbours() -> None:
    """Each gap as a share of the front's range; the ends are not crowded at all."""
    costs = [(0.0, 10.0), (1.0, 6.0), (3.0, 5.0), (10.0, 0.0), (20.0, 20.0)]
    crowding = {one.place: one.crowding for one in select(costs, 4)}
    infinite = float("inf")
    assert crowding == {0: infinite, 1: (0.3 + 0.5) / 2, 2: (0.9 + 0.6) / 2, 3: infinite}
