"""Ranking of individuals, by which generations are selected."""

from hypothesis import given
from hypothesis import strategies as st

from planish.core import Candidate, crowding_distances, nondominated_sort
from planish.search.nsga2 import Individual, ranked

COSTS = st.integers(1, 3).flatmap(
    lambda n: st.lists(st.tuples(*[st.integers(0, 5).map(float)] * n), max_size=24)
)


@given(COSTS, st.integers(1, 30))
def test_the_first_fronts_are_selected_and_of_the_last_the_least_crowded(
    costs: list[tuple[float, ...]], most: int
) -> None:
    known: dict[tuple[float, ...], tuple[int, set[float]]] = {}
    for rank, front in enumerate(nondominated_sort(costs)):
        vectors = [costs[index] for index in front]
        for vector, crowding in zip(vectors, crowding_distances(vectors), strict=True):
            known.setdefault(vector, (rank, set()))[1].add(crowding)
    everything = ranked([Individual(Candidate(), each) for each in costs], len(costs))
    selected = ranked([Individual(Candidate(), each) for each in costs], most)
    assert sorted(each.costs for each in everything) == sorted(costs)
    assert selected == everything[:most]
    assert all(each.crowding in known[each.costs][1] for each in everything)
    order = [(known[each.costs][0], -each.crowding) for each in everything]
    assert order == sorted(order)


def test_crowding_is_the_mean_gap_between_the_neighbours() -> None:
    """Each gap as a share of the front's range; the ends are not crowded at all."""
    costs = [(0.0, 10.0), (1.0, 6.0), (3.0, 5.0), (10.0, 0.0), (20.0, 20.0)]
    crowding = {each.costs: each.crowding for each in ranked([Individual(Candidate(), c) for c in costs], 4)}
    infinite = float("inf")
    assert list(crowding) == [costs[0], costs[3], costs[2], costs[1]]
    assert crowding == dict(zip(costs, [infinite, (0.3 + 0.5) / 2, (0.9 + 0.6) / 2, infinite], strict=False))
