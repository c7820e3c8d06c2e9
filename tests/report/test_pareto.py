"""What is drawn of several objectives."""

from dataclasses import replace

import pytest

from planish.core import Candidate, Objective
from planish.report.chart_data import TRADEOFF_POINTS, tradeoffs
from report.planks import ERROR, TIME, failed, measured

SCORE = Objective("score", "", "up")


def test_a_front_over_two_directions() -> None:
    trials = [
        measured(0, 1.0, score=1.0),
        measured(1, 2.0, score=3.0),
        measured(2, 3.0, score=2.0),
        failed(3),
        measured(4, 0.1),
    ]
    start = trials[2].candidate
    (found,) = tradeoffs(trials, [TIME, SCORE], [trials[1].candidate, trials[3].candidate], start)
    assert (found.x, found.y) == (TIME, SCORE)
    assert found.points == ((1, 1), (2, 3), (3, 2))
    assert found.front == ((1, 1), (2, 3))
    assert found.finalists == ((2, 3),)
    assert found.baseline == (3, 2)


def test_each_further_objective_is_set_against_the_leading_one() -> None:
    trials = [measured(i, i + 1.0, error=9.0 - i, score=2.0) for i in range(3)]
    found = tradeoffs(trials, [TIME, ERROR, SCORE], [], Candidate())
    assert [t.y for t in found] == [ERROR, SCORE]
    assert found[1].front == ((1, 2), (2, 2), (3, 2))
    assert found[0].baseline is None


@pytest.mark.parametrize("objectives", [[TIME], [TIME, ERROR]])
def test_nothing_to_trade(objectives: list[Objective]) -> None:
    assert tradeoffs([failed(0), measured(1, 1.0)], objectives, [], None) == []


def test_of_thousands_the_front_is_kept_whole() -> None:
    count = 2 * TRADEOFF_POINTS + 1
    trials = [
        replace(measured(i, i + 1.0, error=float(count - i)), candidate=Candidate()) for i in range(count)
    ]
    (found,) = tradeoffs(trials, [TIME, ERROR], [], None)
    assert 0 < len(found.points) <= TRADEOFF_POINTS
    assert len(found.front) == count
