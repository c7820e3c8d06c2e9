"""Which steps do together what each does alone, and which three are worth a measurement together."""

import math

import pytest

from planish.core import Effect, Objective
from planish.tuning.finalist_steps import is_additive, suggested


def pair(one: int, other: int, *, additive: bool) -> Effect:
    return Effect((one, other), {"time_s": 0.5}, {"time_s": additive, "error": True})


def test_triples_are_those_whose_pairs_are_not_what_their_steps_make() -> None:
    pairs = [pair(0, 1, additive=False), pair(0, 3, additive=False), pair(1, 3, additive=True)]
    assert suggested([*pairs, pair(2, 3, additive=True)]) == [(0, 1, 3)]
    assert suggested(pairs[:1]) == [], "one pair suggests nothing"
    assert suggested([Effect((0, 1)), Effect((0, 2), why="it fails")]) == [], "nothing is known"


@pytest.mark.parametrize(
    ("together", "parts", "additive"),
    [
        (0.25, (0.5, 0.5), True),
        (0.252, (0.5, 0.5), True),
        (0.26, (0.5, 0.5), False),
        (0.0, (0.0, 0.5), True),  # what takes no memory alone takes none
        (0.5, (0.0, 0.5), False),
        (math.inf, (math.inf, 0.5), True),
        (0.5, (math.inf, 0.5), False),
        (0.5, (math.inf, 0.0), False),
    ],
)
def test_ratios_of_steps_multiply(together: float, parts: tuple[float, ...], additive: bool) -> None:
    alone = [{"memory": each} for each in parts]
    assert is_additive(Objective("memory"), {"memory": together}, alone, 0.01) is additive


def test_differences_of_steps_add_up() -> None:
    counted = Objective("count", exact=True)
    assert is_additive(counted, {"count": -3.0}, [{"count": -1.0}, {"count": -2.0}], 0.0)
    assert not is_additive(counted, {"count": -3.0}, [{"count": -1.0}, {"count": -1.0}], 0.0)
