"""Greedy cover against its definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from planish.train.labeling.choice import greedy_cover

TABLES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.integers(0, 9))


def _left(costs: NDArray[np.float64], baseline: NDArray[np.float64], chosen: list[int]) -> float:
    return sum(min([baseline[row], *(costs[row, one] for one in chosen)]) for row in range(len(baseline)))


@given(costs=TABLES, size=st.integers(1, 5))
def test_each_choice_leaves_the_least(costs: NDArray[np.float64], size: int) -> None:
    baseline = np.full(len(costs), 5.0)

    chosen = greedy_cover(costs, baseline, size)

    for count in range(len(chosen)):
        left = _left(costs, baseline, chosen[: count + 1])
        assert left == min(_left(costs, baseline, [*chosen[:count], one]) for one in range(costs.shape[1]))
        assert left < _left(costs, baseline, chosen[:count])
    if len(chosen) < size:
        left = _left(costs, baseline, chosen)
        assert all(_left(costs, baseline, [*chosen, one]) == left for one in range(costs.shape[1]))


def test_a_list_that_failed_everywhere_is_never_chosen() -> None:
    costs = np.array([[np.inf, 3.0], [np.inf, 9.0]])

    assert greedy_cover(costs, np.array([5.0, 5.0]), 2) == [1]


def test_what_takes_longer_has_to_save_more_by_the_square_root() -> None:
    costs, baseline = np.array([[0.0, 2.0]]), np.array([5.0])

    assert greedy_cover(costs, baseline, 1, np.array([1.0, 1.0])) == [0]
    assert greedy_cover(costs, baseline, 1, np.array([2.7, 1.0])) == [0]
    assert greedy_cover(costs, baseline, 1, np.array([2.8, 1.0])) == [1]
