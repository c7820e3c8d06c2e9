"""Small language models of the experiments: a stopped training is resumed, and keeps its records."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from planish.train.text_training import TextConfig
from thesis_ch4.small_model import HELD, read_records, train_small_model
from train.test_text_training import SHAPE, texts


def test_a_stopped_training_is_resumed_with_all_records(tmp_path: Path) -> None:
    learnt, held = texts(40), texts(8, 1)
    whole, parts = (
        TextConfig(12, 0, tmp_path / f"{name}.checkpoint", batch=200, rate=1e-2, every=4)
        for name in ("whole", "parts")
    )
    expected, _ = train_small_model(learnt, held, SHAPE, whole)
    for _ in range(2):
        with pytest.raises(SystemExit, match="the same command goes on"):
            train_small_model(learnt, held, SHAPE, parts, minutes=0)
    found, _ = train_small_model(learnt, held, SHAPE, parts)
    again, _ = train_small_model(learnt, held, SHAPE, parts, minutes=0)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        np.testing.assert_array_equal(again[name], array)
    assert [record["step"] for record in read_records(parts)] == [4, 8, 12]
    assert [record[HELD] for record in read_records(parts)] == [
        record[HELD] for record in read_records(whole)
    ]
    assert [record["tokens"] for record in read_records(parts)] == [800, 1600, 2400]
