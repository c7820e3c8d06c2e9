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
class GuidedBatch:
    """Trials that were chosen by what was known before.

    Args:
        before: how many trials were learnt from.
        places: of each trial that was measured, where the prediction put it: 0 is the best, 1 the worst.
        values: what was measured of them.
        correlation: of the predicted order with the measured one, Spearman's.
    """

    before: int
    places: Sequence[float]
    values: Sequence[float]
    correlation: float


@dataclass(frozen=True)
class Guidance:
    """What a model knew in a run.

    Args:
        batches: those that were predicted before they were measured.
        importance: feature to how much worse the winner is predicted to be with other trials' values of it,
            in standard deviations of what is predicted for trials; the greatest first.
    """

    batches: Sequence[GuidedBatch]
    importance: Sequence[tuple[str, float]]


def guidance_of(story: ReportData, level: Level) -> Guidance | None:
    """Compute what the model of a run knew; None where no model guided it, or its features are not known.

    Args:
        story: the run.
        level: of its task.
    """
    if story.run.searcher != MODEL_SEARCHER or story.best is None:
        return None
    try:
        space = _space(story, level)
        if space is None:
            return None
        learner = _learner(story, space)
        seeds = distinct_seeds(space, SearchContext(_taught(story, level)))
        batches = list(_batches(story, learner, seeds))
        return Guidance(batches, _importance(story, space, learner)) if learner.knows else None
    except PlanishError:  # a file, or the model that the user named, is gone
        return None


def _space(story: ReportData, level: Level) -> CanBeLearnt | None:
    program = level.read(story.task.program, story.task.target)
    space = level.space(story.task.bind(program), story.run.space)
    return space if isinstance(space, CanBeLearnt) else None


def _learner(story: ReportData, space: CanBeLearnt) -> Learner:
    options = story.run.options
    model, objective = str(options.get("model", "auto")), str(options.get("objective", "rank"))
    local, few = str(options.get("local", "trees")), int(options.get("few", FEW))
    return make_learner(space, story.run.seed, model, objective, "mean", 0.0, local, few)


def _taught(story: ReportData, level: Level) -> Sequence[Candidate]:
    """Return what other programs had taught the run, which its seeds come from."""
    return [candidate_from_json(each, level.steps) for each in story.run.taught or ()]


def _batches(story: ReportData, learner: Learner, seeds: Sequence[Candidate]) -> Iterator[GuidedBatch]:
    """Predict and learn batch after batch, as the search did."""
    before = 0
    for batch in _as_searched(story, seeds):
        if learner.knows:
            yield _batch(story, learner, before, batch)
        learner.learn([trial.candidate for trial in batch], [trial.cost(story.objective) for trial in batch])
        before += len(batch)


def _as_searched(story: ReportData, seeds: Sequence[Candidate]) -> Iterator[Sequence[Trial]]:
    """Part the trials as the search did, by their places among its proposals; some may have been lost."""
    options, first, left = story.run.options, 0, deque(story.trials)
    if left and left[0].candidate == story.baseline and story.baseline not in seeds:
        first = left.popleft().index + 1  # it was measured before the search, which did not ask for it
    sizes = int(options.get("first", FIRST)), int(options.get("batch", MOST))
    for size in batch_sizes(*sizes, float(options.get("growth", GROWTH)), len(seeds)):
        if not left:
            return
        first += size
        if batch := [left.popleft() for _ in range(sum(trial.index < first for trial in left))]:
            yield batch


def _batch(story: ReportData, learner: Learner, before: int, trials: Sequence[Trial]) -> GuidedBatch:
    import numpy as np

    from planish.models.cost_model import rank_correlation

    measured = [trial for trial in trials if value_of(trial, story.objective) is not None]
    values = [value for trial in measured if (value := value_of(trial, story.objective)) is not None]
    scores = learner.score([trial.candidate for trial in measured]) if measured else np.zeros(0, np.float32)
    places = np.argsort(np.argsort(scores, kind="stable"), kind="stable") / max(1, len(measured) - 1)
    costs = np.array([story.objective.cost(value) for value in values], np.float32)
    return GuidedBatch(before, [float(place) for place in places], values, rank_correlation(scores, costs))


def _importance(story: ReportData, space: CanBeLearnt, learner: Learner) -> Sequence[tuple[str, float]]:
    """Return the winner other trials' features, one column at a time."""
    import numpy as np

    every = [trial.candidate for trial in story.trials]
    others = space.features(every[:: -(-len(every) // BESIDE)])
    winner = _row(story, space)
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


def _row(story: ReportData, space: CanBeLearnt) -> NDArray[np.float32]:
    """Describe the winner; where it has no features, as a library's call, the best of the search."""
    assert story.best is not None
    winner: Candidate = story.finalists[0].candidate if story.finalists else story.best.candidate
    try:
        return space.features([winner])[0]
    except ScheduleError:
        return space.features([story.best.candidate])[0]


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


def proposals_of(story: ReportData, level: Level) -> Sequence[Proposal]:
    """Ask a run's policy about its first trials; none where no policy was followed, or it is gone.

    Args:
        story: the run.
        level: of its task.
    """
    if story.run.searcher not in POLICY_SEARCHERS:
        return ()
    shown = story.trials[:SHOWN_PROPOSALS]
    try:
        found = _probabilities(story, level, shown)
    except PlanishError:  # the policy that the user named is gone, or the back end is
        return ()
    pairs = zip(shown, found, strict=True)
    return [Proposal(trial, p, value_of(trial, story.objective)) for trial, p in pairs]


def _probabilities(story: ReportData, level: Level, trials: Sequence[Trial]) -> list[float]:
    from planish.models.named_policies import AUTO, chances, policy_named

    program = level.read(story.task.program, story.task.target)
    space = level.space(story.task.bind(program), story.run.space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the run has told them
        policy = policy_named(space, str(story.run.options.get("policy", AUTO)))
        return chances(policy, space, [trial.candidate for trial in trials])
