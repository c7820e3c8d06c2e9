"""A Gaussian process for the first few trials of a program, when trees would have too few rows to split."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planish.models.cost_model import Dataset, Floats, Prediction, Predicts

Numbers = NDArray[np.floating[Any]]

SCALES = (0.25, 0.5, 1.0, 2.0)
"""Lengths of the kernel that are tried, where candidates are about the square root of 2 apart."""
NOISES = (0.003, 0.03, 0.2)
"""Variances of measuring that are tried, as shares of the process's."""
LEAST = 2
"""With fewer rows nothing is learnt."""
LEAST_BESIDE = 8
"""With fewer rows a global model is asked alone."""
DIGITS = 5
"""By which columns are compared, in deviations."""
_TINY = 1e-12


class _Fit(NamedTuple):
    """A kernel's fit.

    Args:
        likelihood: the logarithm of it.
        scale: of the kernel.
        trend: what is expected everywhere, and what the global model's prediction is multiplied by.
        factor: Cholesky's, of the rows' covariances.
        weights: of the rows.
        variance: of the process.
    """

    likelihood: float
    scale: float
    trend: Numbers
    factor: Numbers
    weights: Numbers
    variance: float


class _Learnt(NamedTuple):
    """A fitted process.

    Args:
        columns: that vary among the rows.
        middle: of these columns.
        spread: of these, times the square root of their number.
        rows: that were learnt from, so scaled.
        fit: of the best kernel.
    """

    columns: NDArray[np.intp]
    middle: Numbers
    spread: Numbers
    rows: Numbers
    fit: _Fit


@dataclass
class GaussianProcess:
    """Predicts costs by those of candidates with similar features, with their uncertainty.

    The kernel is Matern's with 5/2, over columns of one spread. Its length and the noise are those of the
    greatest likelihood; what a global model predicts is part of the trend, so that the process learns what
    is to be added to it (equation 4 of AutoTVM). The paper has no such model: its searches have thousands of
    trials, and ours fifty. NumPy alone is needed.

    Args:
        known: the global model; None where there is none.
    """

    known: Predicts | None = None
    _learnt: _Learnt | None = field(init=False, default=None)

    def fit(self, data: Dataset) -> None:
        """Learn from the trials of a program, with one target, instead of what was learnt before."""
        self._learnt = None
        costs = data.targets[:, 0].astype(np.float64)
        least = LEAST if self.known is None else LEAST_BESIDE
        columns = _informative(data.features) if len(costs) >= least else np.zeros(0, np.intp)
        if not len(columns) or not np.ptp(costs):
            return
        chosen = data.features[:, columns].astype(np.float64)
        middle, spread = chosen.mean(axis=0), chosen.std(axis=0) * np.sqrt(len(columns))
        rows = (chosen - middle) / spread
        apart, trend = _apart(rows, rows), self._trend(data.features)
        fits = (_fit(apart, trend, costs, *pair) for pair in product(SCALES, NOISES))
        best = max(fits, key=lambda each: each.likelihood)
        self._learnt = _Learnt(columns, middle, spread, rows, best)

    def predict(self, features: Floats) -> Prediction:
        """Expect the costs of (n, width) features, with their deviation; (n, 1) each.

        As long as nothing is learnt it expects the global model's order, and has no deviation.
        """
        learnt, trend = self._learnt, self._trend(features)
        if learnt is None:
            return Prediction(trend[:, 1:].sum(axis=1, keepdims=True).astype(np.float32))
        asked, fit = (features[:, learnt.columns] - learnt.middle) / learnt.spread, learnt.fit
        near = _kernel(_apart(asked, learnt.rows), fit.scale)
        mean = trend @ fit.trend + near @ fit.weights
        explained = np.linalg.solve(fit.factor, near.T)
        left = np.maximum(1 - (explained**2).sum(axis=0), _TINY)
        deviation = np.sqrt(fit.variance * left)
        return Prediction(mean[:, None].astype(np.float32), deviation[:, None].astype(np.float32))

    def _trend(self, features: Floats) -> Numbers:
        constant = np.ones((len(features), 1))
        if self.known is None:
            return constant
        return np.hstack([constant, self.known.predict(features).mean[:, :1]])


def _informative(features: Floats) -> NDArray[np.intp]:
    """Return the columns that vary; of those that vary alike the first, for they carry the same
    information."""
    varied = np.flatnonzero(np.ptp(features, axis=0))
    if not len(varied):
        return varied
    chosen = features[:, varied].astype(np.float64)
    alike = np.round((chosen - chosen.mean(axis=0)) / chosen.std(axis=0), DIGITS) + 0.0
    return varied[np.sort(np.unique(alike, axis=1, return_index=True)[1])]


def _apart(a: Numbers, b: Numbers) -> Numbers:
    """Return the squared distance of each row of one from each row of the other."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.maximum(squares, 0)


def _kernel(apart: Numbers, scale: float) -> Numbers:
    far = np.sqrt(5 * apart) / scale
    return (1 + far + far**2 / 3) * np.exp(-far)


def _fit(apart: Numbers, trend: Numbers, costs: Numbers, scale: float, noise: float) -> _Fit:
    """Fit the trend and the variance, which have closed forms, for one kernel."""
    count = len(costs)
    factor = np.linalg.cholesky(_kernel(apart, scale) + noise * np.eye(count))
    white = np.linalg.solve(factor, np.column_stack([costs, trend]))
    slopes = np.linalg.lstsq(white[:, 1:], white[:, 0], rcond=None)[0]
    # A global model whose order seems reversed is not used.
    slopes[1:] = np.maximum(slopes[1:], 0)
    left = white[:, 0] - white[:, 1:] @ slopes
    variance = max(float(left @ left) / count, _TINY)
    likelihood = -count / 2 * np.log(variance) - np.log(np.diag(factor)).sum()
    weights: Numbers = np.linalg.solve(factor.T, left)
    return _Fit(likelihood, scale, slopes, factor, weights, variance)
