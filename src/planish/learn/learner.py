"""The model of a guided search: what it learns from, and what it is asked."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core import Candidate, CanFeaturise, PlanishError, unknown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from planish.learn.cost import CostModel, SavedModel

_log = logging.getLogger("planish")

OBJECTIVES = ("rank", "regression")
MEMBERS = 5
"""Models of an ensemble, as in the paper."""


class Learner:
    """The model of a search, and what it has learnt from.

    Args:
        space: describes candidates.
        model: predicts what they cost.
        knows: whether it predicts before it has learnt anything.
        acquisition: what is asked of the model: "mean", "ei" or "ucb".
        bound: deviations of the confidence bound.

    Attributes:
        knows: whether it predicts by now.
        seconds: that learning and predicting took so far, with describing the candidates.
    """

    def __init__(
        self, space: CanFeaturise, model: CostModel, acquisition: str, bound: float, *, knows: bool
    ) -> None:
        self.knows = knows
        self.seconds = 0.0
        self._space, self._model, self._acquisition, self._bound = space, model, acquisition, bound
        self._features: list[NDArray[np.float32]] = []
        self._costs: list[float | None] = []
        self._best = 0.0

    def learn(self, candidates: Sequence[Candidate], costs: Sequence[float | None]) -> None:
        """Learn from what was measured, and from all before; where all failed there is nothing to learn."""
        with self._timed():
            self._learn(candidates, costs)

    def _learn(self, candidates: Sequence[Candidate], costs: Sequence[float | None]) -> None:
        import numpy as np

        from planish.learn.cost import can_grow, dataset_of

        if not can_grow():
            return
        self._features.append(self._space.features(candidates))
        self._costs += costs
        if all(cost is None for cost in self._costs):
            return
        known = np.concatenate(self._features)
        self._model.fit(dataset_of(known, self._costs))
        self.knows = True
        if self._acquisition == "ei":
            self._best = float(self._model.predict(known).mean.min())

    def score(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Predict what candidates cost, or what it is worth to measure them; less is better."""
        from planish.learn.cost import acquire

        with self._timed():
            found = self._model.predict(self._space.features(candidates))
            return acquire(self._acquisition, found, self._best, self._bound)

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Predict what candidates cost that are described by (n, width) features; less is better."""
        return self._model.predict(features).mean[:, 0]

    @contextmanager
    def _timed(self) -> Generator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - begun


def make_learner(
    space: CanFeaturise, seed: int, model: str, objective: str, acquisition: str, bound: float
) -> Learner:
    """Make the model of a search.

    Args:
        space: describes candidates.
        seed: of all randomness.
        model: the global one: "auto" (the user's own for the space's features, or the one that comes with
            planish), "none", or a file.
        objective: what local models learn.
        acquisition: what is asked of the model.
        bound: deviations of the confidence bound.

    Raises:
        PlanishError: an option is unknown; the file is no model of these features; or there is neither a
            global model nor XGBoost, by which local ones are learnt.
    """
    from planish.learn.cost import ACQUISITIONS, Bootstrap, Combined, XgboostTrees, can_grow

    for name, given, legal in (
        ("objective", objective, OBJECTIVES),
        ("acquisition", acquisition, ACQUISITIONS),
    ):
        if given not in legal:
            raise unknown(f"model-guided has no {name}", given, legal)
    known = _global(space, model)
    if known is None and not can_grow():
        what = f"no model for the features {space.schema.name}, and XGBoost is not installed to learn one"
        raise PlanishError(what, "pip install planish[learn]; or search by --searcher genetic.")
    if not can_grow():
        _log.warning("XGBoost is not installed: the global model guides the search alone")
    trees = None if known is None else known.trees
    count = 1 if acquisition == "mean" else MEMBERS
    members = [Combined(XgboostTrees(objective, seed=seed * MEMBERS + i), trees) for i in range(count)]
    predicts = members[0] if count == 1 else Bootstrap(members, seed)
    return Learner(space, predicts, acquisition, bound, knows=known is not None)


def _global(space: CanFeaturise, model: str) -> SavedModel | None:
    """Find the global model; one that came by itself and cannot be read is done without."""
    from planish.learn.cost import model_for, required

    if model == "none":
        return None
    if model != "auto":
        return required(Path(model), space.schema)
    try:
        return model_for(space.schema)
    except PlanishError as error:
        _log.warning("%s; the search goes on without it", error)
        return None
