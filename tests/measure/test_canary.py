"""Speed of a host over time: one slow look is chance, several in a row are not."""

from planish.measure.ray_connection import Canary
from planish.measure.ray_host import canary_s


def test_a_host_is_trusted_until_it_is_slow_several_times_in_a_row() -> None:
    canary = Canary()
    assert [canary.look(seconds) for seconds in (0.010, 0.011, 0.030, 0.012, 0.030, 0.030)] == [""] * 6
    assert canary.look(0.025) == "it has become 2.5 times slower: it is throttled, or other work runs on it"


def test_a_host_that_was_slow_at_first_is_compared_with_its_fastest() -> None:
    canary = Canary()
    assert [canary.look(seconds) for seconds in (0.030, 0.010, 0.030, 0.030)] == [""] * 4
    assert canary.look(0.030)


def test_the_canary_takes_time() -> None:
    assert canary_s() > 0
