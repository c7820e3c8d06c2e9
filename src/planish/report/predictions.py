"""Predictions that guided a run, beside what was measured: those of its cost model and of its policy.

Those of a cost model are computed anew from the trials, by a model of the same kind, options and seed that
learns from batches as the search's did. So a resumed run, or one that another process ran, shows the same. A
policy is asked again when a run is shown: the store keeps a run's candidates, not their probabilities.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planish.core import (
    Candidate,
    Level,
    PlanishError,
    ScheduleError,
    SearchContext,
    Trial,
    candidate_from_json,
)
from planish.models.learner import (
    FEW,
    FIRST,
    GROWTH,
    MOST,
    CanBeLearnt,
    Learner,
    batch_sizes,
    distinct_seeds,
    make_learner,
)
from planish.report.chart_data import value_of
from planish.report.data import ReportData

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL_SEARCHER = "model-guided"
BESIDE = 64
"""Trials, evenly chosen, whose features the winner is given one by one."""
SHOWN_FEATURES = 12


@dataclass(frozen=True)
class PredictedBatch:
    """Trials that were chosen by what was known before.

    Args:
        before: how many trials were learnt from.
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
    """What a model knew in a run.

    Args:
        batches: those that were predicted before they were measured.
        importance: feature to how much worse the winner is predicted to be with other trials' values of it,
            in standard deviations of what is predicted for trials; the greatest first.
    """

    batches: Sequence[PredictedBatch]
    importance: Sequence[tuple[str, float]]


def model_section(data: ReportData, level: Level) -> ModelSection | None:
    """Compute what the model of a run knew; None where no model guided it, or its features are not known.

    Args:
        data: the run.
        level: of its task.
    """
    if data.run.searcher != MODEL_SEARCHER or data.best is None:
        return None
    try:
        space = _space(data, level)
        if space is None:
            return None
        learner = _learner(data, space)
        seeds = distinct_seeds(space, SearchContext(_taught(data, level)))
        batches = list(_batches(data, learner, seeds))
        return ModelSection(batches, _importance(data, space, learner)) if learner.knows else None
    except PlanishError:  # a file, or the model that the user named, is gone
        return None


def _space(data: ReportData, level: Level) -> CanBeLearnt | None:
    program = level.read(data.task.program, data.task.target)
    space = level.space(data.task.bind(program), data.run.space)
    return space if isinstance(space, CanBeLearnt) else None


def _learner(data: ReportData, space: CanBeLearnt) -> Learner:
    options = data.run.options
    model, objective = str(options.get("model", "auto")), str(options.get("objective", "rank"))
    local, few = str(options.get("local", "trees")), int(options.get("few", FEW))
    return make_learner(space, data.run.seed, model, objective, "mean", 0.0, local, few)


def _taught(data: ReportData, level: Level) -> Sequence[Candidate]:
    """Return what other programs had taught the run, which its seeds come from."""
    return [candidate_from_json(each, level.steps) for each in data.run.taught or ()]


def _batches(data: ReportData, learner: Learner, seeds: Sequence[Candidate]) -> Iterator[PredictedBatch]:
    """Predict and learn batch after batch, as the search did."""
    before = 0
    for batch in _as_searched(data, seeds):
        if learner.knows:
            yield _batch(data, learner, before, batch)
        learner.learn([trial.candidate for trial in batch], [trial.cost(data.objective) for trial in batch])
        before += len(batch)


def _as_searched(data: ReportData, seeds: Sequence[Candidate]) -> Iterator[Sequence[Trial]]:
    """Part the trials as the search did, by their indices among its proposals; some may be missing."""
    options, first, left = data.run.options, 0, deque(data.trials)
    if left and left[0].candidate == data.baseline and data.baseline not in seeds:
        first = left.popleft().index + 1  # it was measured before the search, which did not ask for it
    sizes = int(options.get("first", FIRST)), int(options.get("batch", MOST))
    for size in batch_sizes(*sizes, float(options.get("growth", GROWTH)), len(seeds)):
        if not left:
            return
        first += size
        if batch := [left.popleft() for _ in range(sum(trial.index < first for trial in left))]:
            yield batch


def _batch(data: ReportData, learner: Learner, before: int, trials: Sequence[Trial]) -> PredictedBatch:
    import numpy as np

    from planish.models.cost_model import rank_correlation

    measured = [trial for trial in trials if value_of(trial, data.objective) is not None]
    values = [value for trial in measured if (value := value_of(trial, data.objective)) is not None]
    scores = learner.score([trial.candidate for trial in measured]) if measured else np.zeros(0, np.float32)
    ranks = np.argsort(np.argsort(scores, kind="stable"), kind="stable") / max(1, len(measured) - 1)
    costs = np.array([data.objective.cost(value) for value in values], np.float32)
    return PredictedBatch(before, [*map(float, ranks)], values, rank_correlation(scores, costs))


def _importance(data: ReportData, space: CanBeLearnt, learner: Learner) -> Sequence[tuple[str, float]]:
    """Return the winner other trials' features, one column at a time."""
    import numpy as np

    every = [trial.candidate for trial in data.trials]
    others = space.features(every[:: -(-len(every) // BESIDE)])
    winner = _row(data, space)
    varied = np.flatnonzero((others != winner).any(axis=0))
    changed = np.tile(winner, (len(varied), len(others), 1))
    for number, column in enumerate(varied):
        changed[number, :, column] = others[:, column]
    unit = float(learner.predict(others).std()) or 1.0
    found = learner.predict(changed.reshape(-1, others.shape[1])).reshape(len(varied), len(others))
    worse = (found.mean(axis=1) - learner.predict(winner[None])[0]) / unit
    order = np.argsort(-np.abs(worse), kind="stable")[:SHOWN_FEATURES]
    names = space.schema.names
    return [(names[varied[i]], float(worse[i])) for i in order if worse[i]]


def _row(data: ReportData, space: CanBeLearnt) -> NDArray[np.float32]:
    """Describe the winner; where it has no features, as a library's call, the best of the search."""
    assert data.best is not None
    winner: Candidate = data.finalists[0].candidate if data.finalists else data.best.candidate
    try:
        return space.features([winner])[0]
    except ScheduleError:
        return space.features([data.best.candidate])[0]


POLICY_SEARCHERS = ("policy", "priority", "samples")
"""Those that follow a policy. Not `feedback`: its candidates answer what came of those before, so how
probable they are of the program alone, which is what can be asked again, is another thing.
"""
SHOWN_PROPOSALS = 30
"""Trials, from the first on."""


@dataclass(frozen=True)
class Proposal:
    """A candidate of a policy.

    Args:
        trial: what it became.
        probability: that the policy writes it; 0 where it cannot.
        value: what was measured; None where it failed.
    """

    trial: Trial
    probability: float
    value: float | None


def policy_section(data: ReportData, level: Level) -> Sequence[Proposal]:
    """Ask a run's policy about its first trials; none where no policy was followed, or it is gone.

    Args:
        data: the run.
        level: of its task.
    """
    if data.run.searcher not in POLICY_SEARCHERS:
        return ()
    shown = data.trials[:SHOWN_PROPOSALS]
    try:
        found = _probabilities(data, level, shown)
    except PlanishError:  # the policy that the user named is gone, or the back end is
        return ()
    pairs = zip(shown, found, strict=True)
    return [Proposal(trial, p, value_of(trial, data.objective)) for trial, p in pairs]


def _probabilities(data: ReportData, level: Level, trials: Sequence[Trial]) -> list[float]:
    from planish.models.named_policies import AUTO, chances, policy_named

    program = level.read(data.task.program, data.task.target)
    space = level.space(data.task.bind(program), data.run.space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the run has told them
        policy = policy_named(space, str(data.run.options.get("policy", AUTO)))
        return chances(policy, space, [trial.candidate for trial in trials])
