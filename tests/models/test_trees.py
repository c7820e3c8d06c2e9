"""Prediction of boosted trees."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from amounts import examples
from planish.models.trees import BoostedTrees


@given(
    arrays.arrays(
        np.float32,
        st.tuples(st.integers(0, 300), st.just(4)),
        elements=st.sampled_from((-1, -0.0, 0, 2, np.nan)),
    ),
    st.integers(0, 4),
    st.sampled_from((1, 3)),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=examples(60))
def test_trees_predict_what_a_walk_down_each_of_them_finds(
    rows: np.ndarray[tuple[int, ...], np.dtype[np.float32]], depth: int, outputs: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    inner = 2**depth - 1
    model = BoostedTrees.of(
        {
            "start": random.normal(size=outputs).astype(np.float32),
            "features": random.integers(0, 4, (5, inner), np.int16),
            "thresholds": random.choice([-1, 0, 1, np.inf], (5, inner)).astype(np.float32),
            "leaves": random.normal(size=(5, inner + 1, outputs)).astype(np.float16),
        }
    )

    expected = [_walked(model, row) for row in rows]

    assert np.array_equal(model.predict(rows).mean, np.array(expected, np.float32).reshape(-1, outputs))


def _walked(
    model: BoostedTrees, row: np.ndarray[tuple[int], np.dtype[np.float32]]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = model.start.astype(np.float64)
    for features, thresholds, leaves in zip(model.features, model.thresholds, model.leaves, strict=True):
        node = 0
        while node < len(features):
            node = 2 * node + 1 + int(row[features[node]] > thresholds[node])
        found += leaves[node - len(features)]
    return found
