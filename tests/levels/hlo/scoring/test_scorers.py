"""A race that useless modules lose early, and the interval of a difference beside what chance does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.levels.hlo.ir.mlir import TensorType
from planish.levels.hlo.scoring.metrics import error_of
from planish.levels.hlo.scoring.scorers import CHANCE, Prediction, Race, error_half_width
from planish.levels.hlo.workload.examples import Calls

BATCH, COUNT = 20, 1000


class Knowing:
    """A back end whose examples are their own answers."""

    name = "knowing"

    def compile(self, text: str) -> Wrong:
        raise NotImplementedError(text)

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        return array

    def get(self, array: NDArray[Any]) -> NDArray[Any]:
        return array


class Wrong:
    """Answers with 1 for what is below a share, else with 0, which is right; counts its runs."""

    def __init__(self, share: float) -> None:
        self.share, self.runs = share, 0

    def __call__(self, arguments: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        self.runs += 1
        wrong = arguments[0][:, 0] < self.share
        return [np.stack([~wrong, wrong], axis=1).astype(np.float32)]


def scored(share: float, race: Race | None) -> tuple[float, int]:
    draws = np.random.default_rng(0).permutation(COUNT).astype(np.float32)[:, None] / COUNT
    batches = [{0: draws[first : first + BATCH]} for first in range(0, COUNT, BATCH)]
    calls, module = Calls(batches, np.zeros(COUNT, np.int64), BATCH, COUNT), Wrong(share)
    types = [TensorType((BATCH, 1), "f32")]
    prediction = Prediction(Knowing(), types, calls, lambda a, t: error_of(a[0], t[0]))
    return prediction.error(module, {}, race), module.runs


def test_a_module_is_of_use_up_to_twice_the_error_or_half_the_right_answers() -> None:
    assert Race.against(0.15).limit == pytest.approx(0.3)
    assert Race.against(0.6).limit == pytest.approx(0.8)


def test_what_answers_at_random_sees_few_examples() -> None:
    error, runs = scored(0.9, Race.against(0.15))
    assert runs <= 2
    assert error == pytest.approx(0.9, abs=0.15)
    assert scored(0.9, None) == (pytest.approx(0.9), COUNT // BATCH)


@pytest.mark.parametrize("share", [0.0, 0.15, 0.29, 0.31])
def test_what_may_be_of_use_sees_all_of_them(share: float) -> None:
    assert scored(share, Race.against(0.15)) == (pytest.approx(share), COUNT // BATCH)


def test_nothing_is_given_up_by_one_look_at_a_few() -> None:
    """By chance five of five are wrong once in 400 times, where three of ten are."""
    race = Race.against(0.15)
    assert not race.lost(1.0, 5)
    assert race.lost(1.0, 12)
    assert not race.lost(0.35, 1000)
    assert not race.lost(0.0, 1000)


@pytest.mark.parametrize("limit", [0.02, 0.3, 0.8])
def test_what_is_at_the_limit_is_hardly_ever_given_up(limit: float) -> None:
    """The exact chance, by the binomial distribution, of each number of wrong answers."""
    race, seen = Race(limit), 64
    chance = [math.comb(seen, k) * limit**k * (1 - limit) ** (seen - k) for k in range(seen + 1)]
    assert math.isclose(sum(chance), 1)
    given_up = sum(each for k, each in enumerate(chance) if race.lost(k / seen, seen))
    assert 0 < given_up <= CHANCE


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
        held += abs((only_before - only_now) / count - (lost - won)) <= error_half_width(now, before)
    assert 0.93 <= held / len(draws) <= 0.995


def test_answers_on_which_both_agree_tell_nothing() -> None:
    right = np.arange(10_000) < 8_800
    assert error_half_width(right, right) < 0.0003
    other = right ^ (np.arange(10_000) % 50 == 0)
    assert error_half_width(other, right) == pytest.approx(1.96 * 0.02**0.5 / 100, rel=0.3)
    assert error_half_width(other, right) == error_half_width(right, other)
