"""Random inputs of a model, and further ones made of the user's."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from levels.graph.models import constant, model, tokens, weight, write
from planish.levels.graph.feeds import derived, make_feeds
from planish.levels.graph.source import read_model

GENERATOR = np.random.default_rng(3)


def test_values_stay_and_move() -> None:
    image = GENERATOR.standard_normal((2, 3, 4)).astype(np.float32)
    made = derived([{"x": image}], 2)
    assert len({feed["x"].tobytes() for feed in (*made, {"x": image})}) == 3
    for feed in made:
        assert feed["x"].dtype == image.dtype
        assert sorted(feed["x"].reshape(-1)) == sorted(image.reshape(-1))


def test_a_column_of_many_rows_keeps_its_values() -> None:
    table = np.stack([np.arange(20.0), np.arange(20.0) * 1000], axis=1)
    batches = [{"x": table[:10]}, {"x": table[10:]}]
    for feed in derived(batches, 2):
        assert feed["x"].shape == (10, 2)
        assert set(feed["x"][:, 0]) <= set(table[:, 0])
        assert set(feed["x"][:, 1]) <= set(table[:, 1])


def test_ids_stay_in_range_and_masks_and_positions_stay() -> None:
    ids = GENERATOR.integers(5, 90, (1, 16))
    mask = (np.arange(16) < 9).astype(np.int64)[None]
    given = {"ids": ids, "mask": mask, "positions": np.arange(16)[None]}
    (made,) = derived([given], 1)
    assert sorted(made["ids"][0]) == sorted(ids[0])
    assert not np.array_equal(made["ids"], ids)
    assert np.array_equal(made["mask"], mask)
    assert np.array_equal(made["positions"], given["positions"])


def test_there_are_none_of_what_cannot_move() -> None:
    assert not derived([{"x": np.ones((4, 4), np.float32), "flag": np.ones((), np.bool_)}], 2)
    assert not derived([{"n": np.array(7)}], 2)


def drawn(made: onnx.ModelProto, folder: Path) -> np.ndarray[tuple[int, ...], np.dtype[Any]]:
    """Draw inputs of a model, and join all of their numbers."""
    program = read_model(write(made, folder / "t.onnx"), {})
    return np.concatenate([feed["x"].reshape(-1) for feed in make_feeds(program, made)])


def test_whole_numbers_stay_in_the_table_that_they_look_up(tmp_path: Path) -> None:
    found = drawn(tokens(rows=7), tmp_path)
    assert found.min() >= 0
    assert 2 <= found.max() < 7


@pytest.mark.parametrize(("dtype", "most"), [("uint8", 255), ("int8", 127), ("int64", 1)])
def test_pixels_have_all_values_and_masks_two(tmp_path: Path, dtype: str, most: int) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT)]
    found = drawn(model(nodes, [], (3, 64, 64), helper.np_dtype_to_tensor_dtype(np.dtype(dtype))), tmp_path)
    assert (found.min(), found.max()) == (0, most)


def test_a_column_of_whole_numbers_stays_in_the_table_that_it_looks_up(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gather", ["x", "second"], ["column"], axis=1),
        helper.make_node("Gather", ["table", "column"], ["y"]),
    ]
    weights = [weight("table", 50, 6), constant("second", np.array(1))]
    assert 2 < drawn(model(nodes, weights, (4, 3), onnx.TensorProto.INT64), tmp_path).max() < 50
