"""A few of the networks that `make fuzz` draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz_networks import judge, judge_images

SEEDS = (7, 16, 21, 35, 209, 10281)
"""16 selects elements by a constant, 209 has an output without elements, 10281 an Expand of channels that are
last."""


@pytest.mark.parametrize("seed", SEEDS)
def test_random_networks_are_right(tmp_path: Path, seed: int) -> None:
    assert judge(seed, tmp_path) == ("right", "")


@pytest.mark.parametrize("seed", range(3))
def test_random_networks_of_images_are_right(tmp_path: Path, seed: int) -> None:
    assert judge_images(seed, tmp_path) == ("right", "")
