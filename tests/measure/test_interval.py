"""The interval of a ratio, and what it is taken to mean."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from planish.core import Objective, Ratio
from planish.measure import intervals
from planish.measure.intervals import noise, ratio

TIME = Objective("time_s", "s")
GFLOPS = Objective("gflops", "GFLOPS", "up")
QUANTITIES = arrays(float, (5, 3), elements=st.floats(0.5, 2.0))


@given(QUANTITIES, QUANTITIES)
def test_the_ratio_lies_in_its_interval_and_in_the_data(over: np.ndarray, under: np.ndarray) -> None:
    found = ratio(over.tolist(), under.tolist())
    assert found.low <= found.value * (1 + 1e-9)
    assert found.value <= found.high * (1 + 1e-9)
    assert (over / under).min() <= found.value * (1 + 1e-9)
    assert found.value <= (over / under).max() * (1 + 1e-9)


@given(QUANTITIES, QUANTITIES)
def test_the_unit_does_not_matter(over: np.ndarray, under: np.ndarray) -> None:
    here = ratio(over.tolist(), under.tolist())
    there = ratio((over * 1024).tolist(), (under * 1024).tolist())
    assert here == there


@given(QUANTITIES, QUANTITIES)
def test_the_other_way_round_it_is_the_inverse(over: np.ndarray, under: np.ndarray) -> None:
    here, there = ratio(over.tolist(), under.tolist()), ratio(under.tolist(), over.tolist())
    assert [1 / here.value, 1 / here.high, 1 / here.low] == pytest.approx(
        [there.value, there.low, there.high]
    )


@given(QUANTITIES)
def test_nobody_is_faster_than_himself(values: np.ndarray) -> None:
    assert ratio(values.tolist(), values.tolist()) == Ratio(1.0, 1.0, 1.0)


@pytest.mark.parametrize("count", range(8, 13))
def test_of_many_processes_it_is_what_wilcoxons_test_does_not_reject(count: int) -> None:
    """The test, by all 2 ** count ways to give ranks a sign, rejects (1 %) just outside, not just inside."""
    logs = np.random.default_rng(count).normal(0.1, 0.2, count)
    found = ratio([[v] for v in np.exp(logs)], [[1.0]] * count)
    signs = np.array(list(product([0, 1], repeat=count)))
    sums = signs @ np.arange(1, count + 1)

    def rejects(centre: float) -> bool:
        moved = logs - centre
        rank = (np.abs(moved).argsort().argsort() + 1)[moved > 0].sum()
        return 2 * min((sums <= rank).mean(), (sums >= rank).mean()) <= 0.01

    ends = np.log([found.low - 1e-9, found.low + 1e-9, found.high - 1e-9, found.high + 1e-9])
    assert [rejects(end) for end in ends] == [True, False, False, True]


@pytest.mark.parametrize(
    ("tail", "freedom", "t"), [(0.01, 1, 31.821), (0.005, 2, 9.925), (0.005, 4, 4.604), (0.001, 9, 4.297)]
)
def test_few_processes_are_judged_by_students_distribution(tail: float, freedom: int, t: float) -> None:
    assert intervals._student(tail, freedom) == pytest.approx(t, abs=1e-3)  # pyright: ignore[reportPrivateUsage]


def test_the_more_variants_the_wider_is_the_interval_of_each() -> None:
    for count in (3, 5, 10, 20, 40):
        over = np.exp(np.random.default_rng(count).normal(0, 0.05, (count, 1))).tolist()
        alone, *others = (ratio(over, [[1.0]] * count, variants) for variants in (1, 3, 9))
        assert alone.width < others[0].width <= others[1].width


def test_a_few_processes_that_agree_by_luck_prove_no_small_gain() -> None:
    """Five memory layouts out of five may favour one side: that happens in 3 % of comparisons of equals."""
    agree = [[0.99], [0.9901], [0.9899], [0.9902], [0.9898]]
    assert ratio(agree, [[1.0]] * 5).verdict(TIME) == "undecided"
    assert ratio(agree * 2, [[1.0]] * 10).verdict(TIME) == "better"


def test_drift_that_both_share_cancels() -> None:
    drift = np.linspace(1, 10, 15).reshape(5, 3)
    found = ratio((drift * 0.9).tolist(), drift.tolist())
    assert [found.value, found.low, found.high] == pytest.approx([0.9] * 3)


def test_what_one_process_alone_shows_is_no_difference() -> None:
    """Its three rounds agree, but they are one observation."""
    over = [[0.5] * 3, *[[1.0 + 0.01 * p] * 3 for p in range(-2, 2)]]
    assert ratio(over, [[1.0] * 3] * 5).verdict(TIME) == "undecided"


@pytest.mark.parametrize(("effect", "least", "most"), [(1.0, 0, 5), (0.95, 85, 100)])
def test_noise_is_seldom_taken_for_a_gain(effect: float, least: int, most: int) -> None:
    generator = np.random.default_rng(0)

    def measured(factor: float) -> list[list[float]]:
        noise = generator.normal(0, 0.01, (5, 1)) + generator.normal(0, 0.01, (5, 3))
        return (factor * np.exp(noise)).tolist()

    verdicts = [ratio(measured(effect), measured(1.0)).verdict(TIME) for _ in range(100)]
    assert least <= verdicts.count("better") <= most
    assert verdicts.count("worse") <= 10


@pytest.mark.parametrize(
    ("low", "high", "down", "up"),
    [
        (0.8, 0.9, "better", "worse"),
        (1.1, 1.2, "worse", "better"),
        (0.98, 1.02, "same", "same"),
        (0.975, 1.0, "same", "same"),
        (1.0, 1.0, "same", "same"),
        (0.9, 1.1, "undecided", "undecided"),
        (0.96, 1.0, "undecided", "undecided"),
        (0.045, 50.0, "undecided", "undecided"),
        (0.0, math.inf, "undecided", "undecided"),
        (math.inf, math.inf, "worse", "better"),
    ],
)
def test_the_verdict_follows_the_direction(low: float, high: float, down: str, up: str) -> None:
    found = Ratio(low, low, high)
    assert (found.verdict(TIME), found.verdict(GFLOPS)) == (down, up)


@pytest.mark.parametrize(
    ("low", "value", "high", "settled"),
    [
        (1.0, 1.0, 1.0, True),  # no noise
        (0.995, 1.0, 1.005, True),  # nobody would notice
        (0.95, 1.0, 1.05, False),
        (0.8, 0.95, 1.01, False),
        (0.6, 0.8, 0.95, False),  # wider than the gain
        (0.75, 0.8, 0.85, True),
        (1.1, 1.2, 1.3, True),
        (1.01, 1.2, 1.5, False),
        (0.0, 0.0, 0.0, True),
        (1.0, 2.0, math.inf, True),
    ],
)
def test_who_is_measured_further(low: float, value: float, high: float, settled: bool) -> None:
    assert Ratio(value, low, high).conclusive == settled


@pytest.mark.parametrize(("over", "under"), list(product([0.0, 2.0], repeat=2)))
def test_zeros_are_values(over: float, under: float) -> None:
    expected = 1.0 if over == under else math.inf if under == 0 else 0.0
    assert ratio([[over] * 3], [[under] * 3]) == Ratio(expected, expected, expected)


@given(st.lists(st.floats(0.9, 1.1), min_size=3, max_size=9), st.integers(0, 9))
def test_noise_is_how_far_neighbours_differ(values: list[float], seed: int) -> None:
    found = noise(values, seed)
    over = [b / a for a, b in pairwise(values)]
    assert 0 <= found <= max(abs(each - 1) for each in over)
    assert noise([values[0]] * 4, seed) == 0


def test_slow_drift_is_little_noise() -> None:
    assert noise([1 + i / 100 for i in range(10)], 0) == pytest.approx(0.01, rel=0.1)
