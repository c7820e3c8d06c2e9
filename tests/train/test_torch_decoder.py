"""Answers to many prompts at once: those that NumPy writes one after another."""

from __future__ import annotations

import numpy as np
import pytest

from models.test_decoder import chance
from planish.models.decoder import DecoderShape, continued, remembered

pytest.importorskip("torch")

from planish.train import torch_decoder

SHAPE = DecoderShape(tokens=50, context=64, width=16, depth=2, heads=2)


@pytest.mark.parametrize("most", [None, 12])
@pytest.mark.parametrize("cached", [1, 200, 100_000])
def test_answers_are_those_of_one_prompt_at_a_time(
    most: int | None, cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_decoder, "CACHED", cached)
    parameters, random = chance(SHAPE), np.random.default_rng(0)
    prompts = [random.integers(1, 50, length).tolist() for length in (5, 60, 1, 33, 64, 12, 5)]
    ends = {7, 8, 9}
    expected = [
        continued(SHAPE, parameters, remembered(SHAPE, parameters, prompt), ends, most)[0]
        for prompt in prompts
    ]
    assert torch_decoder.greedy_tokens(SHAPE, parameters, prompts, ends, most) == expected
    assert len({len(answer) for answer in expected}) > 2, "they end one after another"
