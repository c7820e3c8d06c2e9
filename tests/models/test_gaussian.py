"""The Gaussian process: against its own definition, and where nothing can be learnt."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import rng
from planish.models.combined import LEAST_OF_PROCESS_BESIDE, NOISES, SCALES, GaussianProcess
from planish.models.cost_model import Dataset, Prediction
from planish.models.learner import batch_sizes, make_learner
from planish.testing.synthetic import Lattice

ROUGH = Lattice((12, 8, 8, 8), ridge=2, ruggedness=0.3)


def rows(count: int, width: int = 4, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


def data_of(features: NDArray[np.float32], costs: NDArray[np.float32]) -> Dataset:
    return Dataset(features, costs[:, None])


class Known:
    """A global model: the sum of the columns."""

    def fit(self, data: Dataset) -> None: ...

    def predict(self, features: NDArray[np.float32]) -> Prediction:
        return Prediction(features.sum(axis=1, keepdims=True))


def test_it_is_the_posterior_of_the_likeliest_kernel() -> None:
    """By the textbook's formulas, with inverses and determinants, for each kernel that is tried."""
    features, asked = rows(12), rows(5, seed=1)
    costs = np.sin(features.sum(axis=1))
    found = GaussianProcess()
    found.fit(data_of(features, costs))
    middle, spread = features.astype(float).mean(axis=0), features.astype(float).std(axis=0) * 2
    a, b = (features - middle) / spread, (asked - middle) / spread

    def kernel(x: NDArray[np.float64], y: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
        r = np.sqrt(5) * np.linalg.norm(x[:, None] - y[None], axis=2) / scale
        return (1 + r + r**2 / 3) * np.exp(-r)

    best, mean, deviation = -np.inf, np.zeros(5), np.zeros(5)
    for scale in SCALES:
        for noise in NOISES:
            covariance = kernel(a, a, scale) + noise * np.eye(12)
            inverse = np.linalg.inv(covariance)
            trend = (inverse @ costs).sum() / inverse.sum()
            left = costs - trend
            variance = left @ inverse @ left / 12
            likelihood = -6 * np.log(variance) - np.log(np.linalg.det(covariance)) / 2
            if likelihood > best:
                near = kernel(b, a, scale)
                best, mean = likelihood, trend + near @ inverse @ left
                deviation = np.sqrt(variance * (1 - np.einsum("ij,jk,ik->i", near, inverse, near)))
    prediction = found.predict(asked)
    assert prediction.deviation is not None
    assert np.allclose(prediction.mean[:, 0], mean, atol=1e-4)
    assert np.allclose(prediction.deviation[:, 0], deviation, atol=1e-4)


def test_it_is_sure_where_it_knows() -> None:
    features = rows(20)
    found = GaussianProcess()
    found.fit(data_of(features, features[:, 0]))
    near, far = found.predict(features).deviation, found.predict(features + 9).deviation
    assert near is not None
    assert far is not None
    assert near.max() < far.min()


def test_a_global_model_is_asked_alone_at_first_and_then_corrected() -> None:
    features = rows(200)
    costs = 3 * features.sum(axis=1) + 2 * features[:, 0]
    found = GaussianProcess(Known())
    few = LEAST_OF_PROCESS_BESIDE - 1
    found.fit(data_of(features[:few], costs[:few]))
    assert np.allclose(found.predict(features).mean, Known().predict(features).mean, atol=1e-5)
    assert found.predict(features).deviation is None
    found.fit(data_of(features[:40], costs[:40]))
    alone = np.corrcoef(features[40:].sum(axis=1), costs[40:])[0, 1]
    assert np.corrcoef(found.predict(features[40:]).mean[:, 0], costs[40:])[0, 1] > alone
    found.fit(data_of(features[:40], -costs[:40]))  # what orders the wrong way round is not believed
    assert np.corrcoef(found.predict(features[40:]).mean[:, 0], -costs[40:])[0, 1] > 0.5


@pytest.mark.parametrize(
    ("features", "costs"),
    [
        (np.zeros((0, 3)), np.zeros(0)),
        (np.ones((1, 3)), np.ones(1)),
        (np.ones((6, 3)), np.arange(6)),
        (np.arange(18).reshape(6, 3), np.ones(6)),
        (np.repeat(np.arange(3), 2)[:, None] * np.ones((1, 3)), np.arange(6)),
        (np.array([[0.0], [1e30], [-1e30]]), np.arange(3)),
    ],
)
def test_where_rows_tell_nothing_it_predicts_all_the_same(
    features: NDArray[np.float64], costs: NDArray[np.float64]
) -> None:
    found, given = GaussianProcess(), features.astype(np.float32)
    found.fit(data_of(given, costs.astype(np.float32)))
    mean = found.predict(given).mean
    assert mean.shape == (len(given), 1)
    assert np.isfinite(mean).all()


def test_columns_that_vary_alike_count_once() -> None:
    features = rows(20, 2)
    more = np.hstack([features, *[2 * features[:, :1] + 1] * 5])
    found, other = GaussianProcess(), GaussianProcess()
    found.fit(data_of(features, features[:, 1]))
    other.fit(data_of(more, features[:, 1]))
    assert np.allclose(found.predict(features).mean, other.predict(more).mean, atol=1e-4)


@pytest.mark.parametrize(("few", "orders"), [(48, True), (0, False), (10, False)])
def test_below_so_many_trials_it_is_what_a_search_asks(few: int, orders: bool) -> None:
    """Trees learn nothing from ten trials."""
    candidates = [ROUGH.sample(rng(1, i)) for i in range(60)]
    learner = make_learner(ROUGH, 0, "none", "rank", "mean", 1.0, gp_threshold=few)
    learner.learn(candidates[:10], [float(i) for i in range(1, 11)])
    assert bool(np.ptp(learner.score(candidates))) == orders


def test_batches_grow_with_what_was_measured() -> None:
    def sizes(count: int, first: int, most: int, growth: float) -> list[int]:
        return [size for size, _ in zip(batch_sizes(first, most, growth), range(count), strict=False)]

    assert sizes(12, 4, 64, 0.125) == [4] * 10 + [5, 5]
    assert sizes(6, 8, 64, 1) == [8, 8, 16, 32, 64, 64]
    assert sizes(3, 8, 4, 0) == [4, 4, 4]
