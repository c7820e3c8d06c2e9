"""Predictions that guided a run, beside what was measured: those of its cost model and of its policy.

They are read from the store, which keeps them with the trials: no model learns anew, and no policy is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from planish.core import Trial, TrialPrediction
from planish.core.ranks import rank_correlation
from planish.tuning.result import Result
from planish.tuning.stored_run import value_of

MODEL_SEARCHER = "model-guided"


@dataclass(frozen=True)
class PredictedBatch:
    """Trials that were chosen by what was known before.

    Args:
        before: how many trials the model had learned from.
        predicted_ranks: of each trial that was measured, as a share: 0 is the best, 1 the worst.
        values: what was measured of them.
        correlation: of the predicted order with the measured one, Spearman's.
    """

    before: int
    predicted_ranks: Sequence[float]
    values: Sequence[float]
    correlation: float


@dataclass(frozen=True)
class ModelSection:
    """Predictions of a run's model.

    Args:
        batches: those that were predicted before they were measured.
        importance: feature to how much worse the best of the search is predicted to be with other trials'
            values of it, in standard deviations of what is predicted for trials; the greatest first.
    """

    batches: Sequence[PredictedBatch]
    importance: Sequence[tuple[str, float]]


def model_section(result: Result) -> ModelSection | None:
    """Return the predictions of the model of a run; None where no model guided it."""
    if result.run.searcher != MODEL_SEARCHER:
        return None
    batches = [_batch(result, before, batch) for before, batch in _batches(result.stored_trials)]
    return ModelSection(batches, result.run.importance) if batches else None


def _batches(trials: Sequence[Trial]) -> Iterator[tuple[int, Sequence[tuple[Trial, TrialPrediction]]]]:
    """Yield the trials of each batch with their predictions, after how many trials were learned from."""
    predicted = [(trial, trial.prediction) for trial in trials if trial.prediction is not None]
    for before, batch in groupby(predicted, key=lambda pair: pair[1].learned):
        yield before, list(batch)


def _batch(result: Result, before: int, batch: Sequence[tuple[Trial, TrialPrediction]]) -> PredictedBatch:
    import numpy as np

    known = [(guess.value, value_of(trial, result.objective)) for trial, guess in batch]
    measured = [(guess, value) for guess, value in known if value is not None]
    values = [value for _, value in measured]
    scores = np.array([guess for guess, _ in measured])
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable") / max(1, len(measured) - 1)
    costs = np.array([result.objective.cost(value) for value in values])
    return PredictedBatch(before, [*map(float, ranks)], values, rank_correlation(scores, costs))


SHOWN_PROPOSALS = 30
"""Trials, from the first on."""


@dataclass(frozen=True)
class Proposal:
    """A candidate of a policy.

    Args:
        trial: what it became.
        probability: that the policy writes it.
        value: what was measured; None where it failed.
    """

    trial: Trial
    probability: float
    value: float | None


def policy_section(result: Result) -> Sequence[Proposal]:
    """Return the first trials that a policy proposed; none where the run followed no policy."""
    if result.run.searcher == MODEL_SEARCHER:
        return ()
    return [
        Proposal(trial, trial.prediction.value, value_of(trial, result.objective))
        for trial in result.stored_trials[:SHOWN_PROPOSALS]
        if trial.prediction is not None
    ]
