"""Which three steps are worth a measurement together."""

from planish.core import Effect
from planish.tuning.final.ablate import suggested


def pair(one: int, other: int, *, additive: bool) -> Effect:
    return Effect((one, other), {"time_s": 0.5}, {"time_s": additive, "error": True})


def test_triples_are_those_whose_pairs_are_not_what_their_steps_make() -> None:
    pairs = [pair(0, 1, additive=False), pair(0, 3, additive=False), pair(1, 3, additive=True)]
    assert suggested([*pairs, pair(2, 3, additive=True)]) == [(0, 1, 3)]
    assert suggested(pairs[:1]) == [], "one pair suggests nothing"
    assert suggested([Effect((0, 1)), Effect((0, 2), why="it fails")]) == [], "nothing is known"
