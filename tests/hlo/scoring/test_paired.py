"""How well the difference of two errors is known, beside what chance does."""

from __future__ import annotations

import numpy as np
import pytest

from planish.hlo.scoring.inference import known_within


@pytest.mark.parametrize(
    ("count", "lost", "won"), [(1000, 0.03, 0.01), (1000, 0.005, 0.0), (200, 0.1, 0.08), (10_000, 0.03, 0.02)]
)
def test_the_interval_has_the_true_difference_in_95_of_100_draws(count: int, lost: float, won: float) -> None:
    draws = np.random.default_rng(0).multinomial(count, (lost, won, 1 - lost - won), 2000)
    held = 0
    for only_before, only_now, _ in draws:
        before, now = np.zeros(count, bool), np.zeros(count, bool)
        before[:only_before] = True
        now[count - only_now :] = True
        held += abs((only_before - only_now) / count - (lost - won)) <= known_within(now, before)
    assert 0.93 <= held / len(draws) <= 0.995


def test_answers_on_which_both_agree_tell_nothing() -> None:
    right = np.arange(10_000) < 8_800
    assert known_within(right, right) < 0.0003
    other = right ^ (np.arange(10_000) % 50 == 0)
    assert known_within(other, right) == pytest.approx(1.96 * 0.02**0.5 / 100, rel=0.3)
    assert known_within(other, right) == known_within(right, other)
