"""Speed of a host over time: one slow look is chance, several in a row are not."""

from planish.measure.ray_host import canary_s
from planish.measure.ray_hosts import Canary


def test_a_host_is_trusted_until_it_is_slow_several_times_in_a_row() -> None:
    canary = Canary()
    assert [canary.look(seconds) for seconds in (0.010, 0.011, 0.030, 0.012, 0.030, 0.030)] == [""] * 6
    assert canary.look(0.025) == "it has become 2.5 times slower: it is throttled, or other work runs on it"


def test_a_host_that_was_slow_at_first_is_compared_with_its_fastest() -> None:
    canary = Canary()
    assert [canary.look(seconds) for seconds in (0.030, 0.010, 0.030, 0.030)] == [""] * 4
    assert canary.look(0.030)


def test_a_host_that_is_slow_from_the_beginning_is_compared_with_others() -> None:
    canary = Canary()
    assert [canary.look(0.030, fastest=0.020) for _ in range(2)] == [""] * 2
    assert canary.look(0.030, fastest=0.020) == "it is 1.5 times slower than another host of its kind"
    assert canary.look(0.020, fastest=0.020) == ""


def test_the_canary_takes_time() -> None:
    assert canary_s() > 0
