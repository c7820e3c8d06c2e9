"""Figures of AutoTVM are published only where all of their searches were made."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "experiments" / "autotvm"


def test_a_figure_of_few_seeds_replaces_no_published_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    figures = import_module("figures")
    plan = figures.FIGURES["6"]

    def is_large(_: object) -> bool:
        return True

    monkeypatch.setattr(figures, "_large", is_large)

    def made(seeds: int) -> dict[str, dict[str, list[Sequence[float]]]]:
        return {name: {each.text: [[1.0]] * seeds for each in plan.settings} for name in plan.variants}

    assert figures._is_whole(made(figures.SEEDS), plan)
    assert not figures._is_whole(made(1), plan)
    assert not figures._is_whole({**made(figures.SEEDS), "lambda 1": {}}, plan)
