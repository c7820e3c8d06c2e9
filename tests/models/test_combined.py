"""Several global models as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import FeatureSchema
from planish.core.ranks import rank_correlation
from planish.models.combined import Pooled, shares
from planish.models.cost_model import Dataset, Predicts
from planish.models.model_files import SavedModel, made_model
from planish.models.trees import XgboostTrees

SCHEMA = FeatureSchema("letters", 1, ("a", "b", "c"))


def rows(seed: int, count: int = 300) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, 3)).astype(np.float32)


def model(*weights: float, programs: int = 1, times: float = 1) -> SavedModel:
    """A model of costs that are a weighted sum of the features."""
    features = rows(0)
    data = Dataset(features, (features @ np.array(weights, np.float32) * times)[:, None])
    trees = XgboostTrees("regression")
    trees.fit(data)
    return replace(made_model("letters", SCHEMA, "regression", {}, data, trees.trees), programs=programs)


def predicted(pool: Predicts, features: NDArray[np.float32]) -> NDArray[np.float32]:
    return pool.predict(features).mean[:, 0]


def test_together_they_know_what_each_knows() -> None:
    asked = rows(2)
    costs = asked[:, 0] + asked[:, 1]
    one, other = model(1, 0, 0), model(0, 1, 0)
    pool = Pooled.of([one, other], rows(1))
    alone = max(rank_correlation(predicted(each.predicts, asked), costs) for each in (one, other))
    assert rank_correlation(predicted(pool, asked), costs) > alone + 0.1


def test_a_models_scale_does_not_make_it_count_more() -> None:
    asked, sample, other = rows(2), rows(1), model(0, 1, 0)
    found = [predicted(Pooled.of([model(1, 0, 0, times=times), other], sample), asked) for times in (1, 1000)]
    assert rank_correlation(*found) > 0.99


def test_who_learnt_from_more_programs_counts_more() -> None:
    few, many = model(1, 0, 0, programs=4), model(-1, 0, 0, programs=100)
    assert shares([few, many]) == pytest.approx([4 / 104, 100 / 104])
    asked = rows(2)
    found = predicted(Pooled.of([few, many], rows(1)), asked)
    assert rank_correlation(found, predicted(many.predicts, asked)) > 0.99


def test_what_is_predicted_of_one_does_not_depend_on_what_is_asked_beside_it() -> None:
    pool, asked = Pooled.of([model(1, 0, 0), model(0, 1, 0)], rows(1)), rows(2)
    assert predicted(pool, asked[:1]) == pytest.approx(predicted(pool, asked)[:1])


def test_a_model_that_expects_the_same_of_all_says_nothing() -> None:
    asked, one = rows(2), model(1, 0, 0)
    found = predicted(Pooled.of([one, model(0, 0, 0)], rows(1)), asked)
    assert rank_correlation(found, predicted(one.predicts, asked)) > 0.99
    silent = predicted(Pooled.of([model(0, 0, 0), model(0, 0, 0)], rows(1)), asked)
    assert not silent.any()
