"""Further inputs have the values of the user's, in other places."""

import numpy as np

from planish.levels.graph.feeds import derived

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
