"""Cost models made of several, and the Gaussian process of the first trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planish.core.ranks import rank_correlation
from planish.models.cost_model import (
    CostModel,
    Dataset,
    Floats,
    HasFitPoint,
    LocalModel,
    Prediction,
    Predicts,
)
from planish.models.model_files import SavedModel

Numbers = NDArray[np.floating[Any]]

SCALES = (0.25, 0.5, 1.0, 2.0)
"""Lengths of the kernel that are tried, where candidates are about the square root of 2 apart."""
NOISES = (0.003, 0.03, 0.2)
"""Variances of measuring that are tried, as shares of the process's."""
LEAST_OF_PROCESS = 2
"""With fewer rows nothing is learnt."""
LEAST_OF_PROCESS_BESIDE = 8
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
        least = LEAST_OF_PROCESS if self.known is None else LEAST_OF_PROCESS_BESIDE
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


ACQUISITIONS = ("mean", "ei", "ucb")
_SURE = 1e-9


@dataclass
class Bootstrap:
    """Ensemble whose members are fitted to bootstrap samples of the rows.

    Args:
        members: models with different seeds.
        seed: of the bootstrap samples.
    """

    members: Sequence[CostModel]
    seed: int = 0

    def fit_point(self, rows: Sequence[int]) -> int | None:
        """Return the last of these numbers of rows at which the members select settings; None for no such."""
        first = self.members[0]
        return first.fit_point(rows) if isinstance(first, HasFitPoint) else None

    def fit(self, data: Dataset) -> None:
        """Fit the members, from scratch."""
        for number, member in enumerate(self.members):
            # The number of rows is part of the seed: a resumed run draws as the first one did, and each refit
            # anew.
            random = np.random.default_rng([self.seed, number, len(data.targets)])
            member.fit(data.rows(random.integers(len(data.targets), size=len(data.targets))))

    def predict(self, features: Floats) -> Prediction:
        """Return the mean of the members' predictions, and their standard deviation."""
        each = np.stack([member.predict(features).mean for member in self.members])
        return Prediction(each.mean(axis=0), each.std(axis=0))


def acquire(name: str, prediction: Prediction, best: float, bound: float) -> Floats:
    """Return acquisition values; less is better.

    Args:
        name: "mean", "ei" (expected improvement) or "ucb" (confidence bound).
        prediction: of one target; with its deviation, unless by the mean.
        best: predicted cost of the best measured candidate.
        bound: standard deviations of the confidence bound.
    """
    mean = prediction.mean[:, 0]
    if name == "mean" or prediction.deviation is None:
        return mean
    deviation = prediction.deviation[:, 0]
    if name == "ucb":
        return (mean - bound * deviation).astype(np.float32)
    # Expected improvement for a normal distribution; where the members agree, the bound keeps it finite.
    gap = (best - mean) / np.maximum(deviation, _SURE)
    erf: Callable[[float], float] = math.erf
    below = 0.5 * (1 + np.array([erf(x / math.sqrt(2)) for x in gap.tolist()]))
    density = np.exp(-(gap**2) / 2) / math.sqrt(2 * math.pi)
    # Negative, since less is better.
    return (-deviation * (gap * below + density)).astype(np.float32)


WEIGHTS = (1.0, 0.5, 0.0)
"""Weights of the global model that are tried; of equally good ones the first is selected."""
FOLDS = 2
LEAST = 16
"""Rows below which the local model is not fitted."""
LEAST_BESIDE = 48
"""Rows below which a global model predicts alone: on held-out programs fewer rows did not improve it."""
GROWTH = 1.5
"""Factor of rows after which the weight and the size of the local model are selected again."""
JUDGED = 1024
"""Most rows by which they are selected, evenly spaced: more would cost more time than they are worth."""


@dataclass
class Combined:
    """Weighted sum of a global and a local model.

    The weight of the global model and the size of the local one are those of the highest rank correlation
    in cross-validation. So a global model that does not fit this program is dropped. Without the library
    of the local model the global model predicts alone.

    Args:
        local: template of the model that is fitted to the program's own trials.
        known: the global model, or None.

    Attributes:
        weight: of the global model.
        correlation: rank correlation in cross-validation; 0 before the first.
    """

    local: LocalModel
    known: Predicts | None = None
    weight: float = field(init=False, default=1.0)
    correlation: float = field(init=False, default=0.0)
    _learnt: CostModel | None = field(init=False, default=None)
    _size: int = field(init=False, default=0)
    _rows: int = field(init=False, default=0)

    def fit_point(self, rows: Sequence[int]) -> int | None:
        """Return the last of these numbers of rows at which `fit` would select settings; None for no such."""
        known, found = self._rows, None
        for count in rows:
            if count >= max(self._least, GROWTH * known):
                known = found = count
        return found

    @property
    def _least(self) -> int:
        return LEAST if self.known is None else LEAST_BESIDE

    def fit(self, data: Dataset) -> None:
        """Learn the local model from the program's trials, with one target, and choose the weight."""
        rows = len(data.targets)
        if rows < self._least or not self.local.can_learn:
            return
        base = self._base(data.features)
        if rows >= GROWTH * self._rows:
            # Evenly over the whole run: early rows are of other candidates than late ones.
            judged = np.arange(0, rows, -(-rows // JUDGED))
            self._choose(data.rows(judged), base[judged])
            self._rows = rows
        local = self.local.sized(self._size) if self._size else None
        if local is not None:
            # On the margin of the global model, as in equation 4: it learns what that one gets wrong.
            local.fit(data, self.weight * base)
        self._learnt = local

    def predict(self, features: Floats) -> Prediction:
        """Expect the order of the costs of (n, width) features; (n, 1)."""
        mean = self.weight * self._base(features)
        if self._learnt is not None:
            mean = mean + self._learnt.predict(features).mean[:, 0]
        return Prediction(mean[:, None])

    def _base(self, features: Floats) -> Floats:
        if self.known is None:
            return np.zeros(len(features), np.float32)
        return self.known.predict(features).mean[:, 0]

    def _choose(self, data: Dataset, base: Floats) -> None:
        # Alternating, so that both folds have rows of early and of late batches.
        fold = np.arange(len(base)) % FOLDS
        # No local model, which leaves the order to the global one, is a choice too.
        sizes = [*self.local.sizes, *([] if self.known is None else [0])]
        found: list[tuple[float, float, int]] = []
        for weight in WEIGHTS if self.known is not None else (0.0,):
            scores = np.mean(
                [self._scores(data, weight * base, fold == k, sizes) for k in range(FOLDS)], axis=0
            )
            found += [(float(score), weight, size) for score, size in zip(scores, sizes, strict=True)]
        # Of equals the first: weights are ordered from the most to the least trust in the global model.
        self.correlation, self.weight, self._size = max(found, key=lambda each: each[0])

    def _scores(
        self, data: Dataset, base: Floats, held: NDArray[np.bool_], sizes: Sequence[int]
    ) -> list[float]:
        """Return how well a model of each size, that learnt from the others, ranks the rows held back."""
        # Boosting adds trees one by one, so the largest model holds the smaller ones: one fit judges all
        # sizes.
        local = self.local.sized(max(sizes))
        local.fit(data.rows(~held), base[~held])
        asked, measured = data.features[held], data.targets[held, 0]
        found = (local.first(size).predict(asked).mean[:, 0] if size else np.float32(0) for size in sizes)
        return [rank_correlation(base[held] + each, measured) for each in found]


SAMPLE = 64
"""Candidates of a space by which models are brought to one scale."""


def shares(models: Sequence[SavedModel]) -> list[float]:
    """Return how much of a pool's word is each model's: in proportion to the programs that it learnt from.

    On recorded programs that neither model saw, such a pool of two orders as well as the larger model alone,
    and better where the smaller has learnt from eight or more. By the square root or the logarithm of the
    programs it is behind where the smaller has learnt from few (`experiments/autotvm/pooling.py`).
    """
    programs = [max(1, model.programs) for model in models]
    return [count / sum(programs) for count in programs]


@dataclass(frozen=True)
class Pooled:
    """Expects the mean of what several models expect, weighted.

    Models that learnt an order predict on scales of their own, so each is centered and scaled: by what it
    predicts for one sample of the space. To scale each batch by itself would be as if all batches were
    equally good, and what a local model learnt to add to one would not fit the next.

    Args:
        members: the models.
        weights: (members,), of the scaled predictions.
        middles: (members,), of what they predict for the sample.
    """

    members: Sequence[Predicts]
    weights: NDArray[np.float64]
    middles: NDArray[np.float64]

    @staticmethod
    def of(models: Sequence[SavedModel], sample: Floats) -> Pooled:
        """Pool models.

        Args:
            models: of the same features.
            sample: (n, width), of candidates of the space.
        """
        predicted = np.stack([model.predicts.predict(sample).mean[:, 0] for model in models]).astype(
            np.float64
        )
        spreads, parts = predicted.std(axis=1), np.array(shares(models))
        # A model that expects the same of all ranks nothing.
        weights = np.divide(parts, spreads, out=np.zeros(len(models)), where=spreads > 0)
        # Back to a scale as the models have it: what is learnt beside them has theirs.
        return Pooled(
            [model.predicts for model in models], weights * (parts @ spreads), predicted.mean(axis=1)
        )

    def predict(self, features: Floats) -> Prediction:
        """Expect the order of the costs of (n, width) features; (n, 1)."""
        each = np.stack([member.predict(features).mean[:, 0] for member in self.members])
        mean = self.weights @ (each - self.middles[:, None])
        return Prediction(mean[:, None].astype(np.float32))
