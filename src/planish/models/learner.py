"""Online cost model of a guided search: training data, fits and predictions."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    CanFeaturize,
    CanSample,
    CanSeed,
    PlanishError,
    SearchContext,
    Space,
    rng,
    unknown,
)
from planish.core.installation import install_command

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from planish.models.combined import GaussianProcess
    from planish.models.cost_model import CostModel, LocalModel, Predicts
    from planish.models.model_files import SavedModel

FIRST, MOST, GROWTH = 4, 64, 0.125
"""The defaults of `batch_sizes`."""


def distinct_seeds(space: Space, context: SearchContext = EMPTY_CONTEXT) -> list[Candidate]:
    """Return the seeds of a search, each state once; an empty list where the space has none."""
    seeds = space.seeds(context) if isinstance(space, CanSeed) else ()
    return [*{space.state_key(each): each for each in seeds}.values()]


def batch_sizes(
    first: int = FIRST, most: int = MOST, growth: float = GROWTH, seeds: int = 0
) -> Iterator[int]:
    """Yield the sizes of batches, without end: in proportion to the candidates that were measured before.

    A model learns most from its first few candidates, so batches begin small.

    Args:
        first: candidates of the first batch, and of any at least.
        most: candidates of a batch at most.
        growth: size of a batch, as a multiple of the candidates that were measured before it.
        seeds: the number of seeds, which all fit into the first batch: they are known to be good, and the
            model is fitted to them first.
    """
    measured = 0
    while True:
        size = min(most, max(first, int(growth * measured)))
        size = size if measured else max(size, seeds)
        yield size
        measured += size


@runtime_checkable
class LearnableSpace(CanFeaturize, CanSample, Protocol):
    """A space whose candidates are described by numbers; a sample of them shows how models predict."""


@dataclass
class Prior:
    """Model of other programs, which predicts the costs of the candidates of a space.

    Args:
        space: describes candidates.
        model: predicts what they cost.
        note: which models these are, for the user.

    Attributes:
        seconds: time spent on predictions so far, including the features.
    """

    space: CanFeaturize
    model: Predicts
    note: str
    seconds: float = field(init=False, default=0.0)

    def score(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Predict the costs of candidates; less is better."""
        begun = time.monotonic()
        found = self.model.predict(self.space.features(candidates)).mean[:, 0]
        self.seconds += time.monotonic() - begun
        return found


def prior_of(space: LearnableSpace, model: str, measured: str = "") -> Prior | None:
    """Return the models that were trained on other programs as one prior; None where there are none.

    Args:
        space: describes the candidates.
        model: "auto" (the user's own for the space's features and the one that comes with planish, together),
            "none", or a name or file.
        measured: name of the search's leading objective; empty for any.

    Raises:
        PlanishError: the named model cannot be read, or is none of these features or of this objective.
    """
    from planish.models.model_files import model_named, models_for

    if model == "none":
        return None
    from planish.models.provenance import OBJECTIVE

    if model == "auto":
        objective = {OBJECTIVE: measured} if measured else {}
        known = models_for(space.schema, {**space.conditions, **objective})
    else:
        known = {model: model_named(model, space.schema, measured)}
    if not known:
        return None
    models = [*known.values()]
    if len(models) == 1:
        return Prior(space, models[0].predicts, _note_of(known))
    from planish.models.combined import SAMPLE, Pooled

    # The same whatever the search's seed: how models compare does not depend on chance.
    sample = space.features([space.sample(rng(0, i)) for i in range(SAMPLE)])
    return Prior(space, Pooled.of(models, sample), _note_of(known))


GUIDED = "the search started from"
"""Begins the note that names the models; `planish show` and reports have it, the end of a run has not."""


def _note_of(known: Mapping[str, SavedModel]) -> str:
    """Return the user's note: the models that guide, and the weight of each."""
    from planish.models.model_files import in_words

    models = [*known.values()]
    programs = ["1 program" if m.programs == 1 else f"{m.programs:,} programs" for m in models]
    trained = [
        f"{name} (trained on {count}" for name, count in zip(map(in_words, known), programs, strict=True)
    ]
    if len(trained) == 1:
        return f"{GUIDED} {trained[0]})"
    from planish.models.combined import shares

    parts = [f"{text}, weight {share:.3f})" for text, share in zip(trained, shares(models), strict=True)]
    return f"{GUIDED} {', '.join(parts[:-1])} and {parts[-1]}"


OBJECTIVES = ("rank", "regression")
LOCAL = ("trees", "tree-gru")
MEMBERS = 5
"""Models of an ensemble, as in the paper."""
LOCAL_EPOCHS = 40
LOCAL_ROWS = 32
"""Epochs and rows of a local TreeGRU, which is fitted anew to a few hundred rows after each batch."""
GP_THRESHOLD = 48
"""Trials below which a Gaussian process predicts."""
LAST = 256
"""Most trials of a Gaussian process, the last ones: the time of a fit grows with their cube."""


class Learner:
    """Model of a search, with its training data.

    Args:
        space: describes candidates.
        model: predicts what they cost.
        gp: Gaussian process that predicts instead of the model while there are few trials, or None.
        gp_threshold: trials from which the model predicts; None where its library is missing, and `gp`
            predicts throughout.
        pretrained: whether it can predict before the first fit.
        learns: whether one of the two can be fitted.
        acquisition: "mean", "ei" or "ucb", for the model; the Gaussian process, which predicts its own
            uncertainty, always has "ei".
        bound: standard deviations of the confidence bound.
        missing_library: the user's note of a library that is not installed; empty where none is missing.
        note: the user's note of the models that the search begins with; empty where there are none.

    Attributes:
        seconds: time spent on fits and predictions so far, including the features.
    """

    def __init__(
        self,
        space: CanFeaturize,
        model: CostModel,
        acquisition: str,
        bound: float,
        *,
        gp: GaussianProcess | None,
        gp_threshold: int | None,
        pretrained: bool,
        learns: bool,
        missing_library: str = "",
        note: str = "",
    ) -> None:
        self._pretrained, self._learns = pretrained, learns
        self.missing_library, self._note = missing_library, note
        self.seconds = 0.0
        self._space, self._model, self._acquisition, self._bound = space, model, acquisition, bound
        self._gp, self._gp_threshold = gp, gp_threshold
        self._new: list[Candidate] = []
        self._features: list[NDArray[np.float32]] = []
        self._costs: list[float | None] = []
        self._ends: list[int] = []  # of the batches to which the model is not fitted yet
        self._measured = False
        self._best = 0.0

    @property
    def ready(self) -> bool:
        """Return whether it can predict now."""
        return self._pretrained or self._measured

    @property
    def learned(self) -> int:
        """Return the number of trials in its training data."""
        return len(self._costs)

    @property
    def notes(self) -> Sequence[str]:
        """Return notes for the user: the models that guided, and why nothing could be learnt."""
        return [note for note in (self._note, self.missing_library, _nothing_in(self._costs)) if note]

    def learn(self, candidates: Sequence[Candidate], costs: Sequence[float | None]) -> None:
        """Add measured candidates to the training data; the next prediction fits the model to all of it.

        While all trials have failed there is nothing to fit.
        """
        self._costs += costs
        if not self._learns:
            return
        self._new += candidates
        self._measured |= any(cost is not None for cost in costs)
        if self._measured:
            self._ends.append(len(self._costs))

    def _fit(self) -> None:
        """Fit as after each batch, without those fits that a later one replaces."""
        import numpy as np

        from planish.models.cost_model import HasFitPoint, dataset_of

        if not self._ends:
            return
        self._features.append(self._space.features(self._new))
        self._new = []
        known = np.concatenate(self._features)
        self._features = [known]
        ends = [] if self._gp_threshold is None else [end for end in self._ends if end >= self._gp_threshold]
        chosen = self._model.fit_point(ends) if isinstance(self._model, HasFitPoint) else None
        for end in dict.fromkeys(end for end in (chosen, *ends[-1:]) if end):
            self._model.fit(dataset_of(known[:end], self._costs[:end]))
        if (gp := self._process) is not None:
            gp.fit(dataset_of(known[-LAST:], self._costs[-LAST:]))
        self._ends = []
        if gp is not None or self._acquisition == "ei":
            self._best = float(self._active_model.predict(known).mean.min())

    @property
    def _process(self) -> GaussianProcess | None:
        """Return the Gaussian process while there are few trials, or where the model cannot be fitted."""
        return self._gp if self._gp_threshold is None or len(self._costs) < self._gp_threshold else None

    @property
    def _active_model(self) -> CostModel:
        return self._process or self._model

    def score(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Return the acquisition values of candidates; less is better."""
        from planish.models.combined import acquire

        with self._timed():
            self._fit()
            found = self._active_model.predict(self._space.features(candidates))
            acquisition = self._acquisition if self._process is None else "ei"
            return acquire(acquisition, found, self._best, self._bound)

    def predict(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Predict the costs of candidates from their features, (n, width); less is better."""
        with self._timed():
            self._fit()
            return self._active_model.predict(features).mean[:, 0]

    @contextmanager
    def _timed(self) -> Generator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - begun


def _nothing_in(costs: Sequence[float | None]) -> str:
    """Return why nothing can be learnt from costs; "" where it can."""
    if len(set(costs)) != 1:
        return ""
    if costs[0] is None:
        return f"the model learned nothing: none of {len(costs)} trials could be measured"
    return f"the model learned nothing: all of {len(costs)} trials cost the same"


def make_learner(
    space: LearnableSpace,
    seed: int,
    model: str,
    objective: str,
    acquisition: str,
    bound: float,
    local: str = "trees",
    gp_threshold: int = GP_THRESHOLD,
    measured: str = "",
) -> Learner:
    """Make the model of a search.

    Args:
        space: describes candidates.
        seed: of all randomness.
        model: the global one: "auto" (the user's own for the space's features and the one that comes with
            planish, together), "none", or a name or file.
        objective: loss of the local models, one of `OBJECTIVES`.
        acquisition: one of `planish.models.combined.ACQUISITIONS`.
        bound: standard deviations of the confidence bound.
        local: kind of the local models, which are fitted to the search's own trials: one of `LOCAL`.
        gp_threshold: trials below which a Gaussian process predicts instead; 0 for none.
        measured: name of the search's leading objective, which a global model must have learnt; empty for
            any.

    Raises:
        PlanishError: an option is unknown; the file is not a model of these features; or there is neither a
            global model, nor the library by which local ones are learnt, nor a Gaussian process.
    """
    from planish.models.combined import ACQUISITIONS, Bootstrap, Combined, GaussianProcess

    for name, value, legal in (
        ("objective", objective, OBJECTIVES),
        ("acquisition", acquisition, ACQUISITIONS),
        ("local", local, LOCAL),
    ):
        if value not in legal:
            raise unknown(f"model-guided has no {name}", value, legal)
    prior = prior_of(space, model, measured)
    count = 1 if acquisition == "mean" else MEMBERS
    locals_ = [_local(space, local, objective, seed * MEMBERS + i) for i in range(count)]
    learns = locals_[0].can_learn
    missing_library = (
        "" if learns else _missing_library(space, local, pretrained=prior is not None, gp=gp_threshold > 0)
    )
    base = prior.model if prior else None
    members = [Combined(each, base) for each in locals_]
    predicts = members[0] if count == 1 else Bootstrap(members, seed)
    process = GaussianProcess(base) if gp_threshold else None
    return Learner(
        space,
        predicts,
        acquisition,
        bound,
        gp=process,
        gp_threshold=gp_threshold if learns else None,
        pretrained=prior is not None,
        learns=learns or process is not None,
        missing_library=missing_library,
        note=prior.note if prior else "",
    )


def _local(space: CanFeaturize, kind: str, objective: str, seed: int) -> LocalModel:
    from planish.models.tree_gru import TreeGru
    from planish.models.trees import XgboostTrees

    if kind == "trees":
        return XgboostTrees(objective, seed=seed)
    return TreeGru(objective, epochs=LOCAL_EPOCHS, rows=LOCAL_ROWS, seed=seed, names=space.schema.names)


def _missing_library(space: CanFeaturize, local: str, *, pretrained: bool, gp: bool) -> str:
    """Return the note on what replaces a model whose library is missing; raise where nothing does."""
    library, extra = ("XGBoost", "learn") if local == "trees" else ("PyTorch", "train")
    install = install_command(extra)
    if gp:
        combined = " and is combined with the global model" if pretrained else ""
        return (
            f"{library} is not installed: a Gaussian process learns from the last {LAST} trials{combined} "
            f"({install})"
        )
    if pretrained:
        return f"{library} is not installed: the global model guides the search alone ({install})"
    what = f"no model for the features {space.schema.name}, and {library} is not installed to learn one"
    raise PlanishError(
        what,
        f"{install}; or without the searcher's option gp_threshold=0, which leaves the Gaussian process out.",
    )
