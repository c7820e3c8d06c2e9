"""What is known of candidates before anything is measured: cost models of other programs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from planish.core import Candidate, CanFeaturise, CanSample, rng

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from planish.learn.cost import Predicts, SavedModel


@runtime_checkable
class CanBeLearnt(CanFeaturise, CanSample, Protocol):
    """A space whose candidates are described by numbers; a sample of them shows how models predict."""


@dataclass
class Prior:
    """A model of other programs, asked about the candidates of a space.

    Args:
        space: describes candidates.
        model: predicts what they cost.
        note: what the user should know of it: which models these are.

    Attributes:
        seconds: that predicting took so far, with describing the candidates.
    """

    space: CanFeaturise
    model: Predicts
    note: str
    seconds: float = field(init=False, default=0.0)

    def score(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Predict what candidates cost; less is better."""
        begun = time.monotonic()
        found = self.model.predict(self.space.features(candidates)).mean[:, 0]
        self.seconds += time.monotonic() - begun
        return found


def prior_of(space: CanBeLearnt, model: str) -> Prior | None:
    """Find what is known of a space's candidates; None where nothing is.

    Args:
        space: describes them.
        model: "auto" (the user's own for the space's features and the one that comes with planish, together),
            "none", or a name or file.

    Raises:
        PlanishError: the named model cannot be read, or is none of these features.
    """
    from planish.learn.cost import model_named, models_for

    if model == "none":
        return None
    known = models_for(space.schema) if model == "auto" else {model: model_named(model, space.schema)}
    return Prior(space, _together(space, [*known.values()]), _told(known)) if known else None


def _together(space: CanBeLearnt, models: Sequence[SavedModel]) -> Predicts:
    """Make one of the models."""
    from planish.learn.cost import Pooled
    from planish.learn.cost.pooled import SAMPLE

    if len(models) == 1:
        return models[0].predicts
    # The same whatever the search's seed: how models compare is no matter of chance.
    return Pooled.of(models, space.features([space.sample(rng(0, i)) for i in range(SAMPLE)]))


def _told(known: Mapping[str, SavedModel]) -> str:
    """Say which models guide, and how much each counts."""
    from planish.learn.cost import shares

    models = [*known.values()]
    told = [f"{name} (learnt from {_programs(model.programs)}" for name, model in known.items()]
    if len(told) == 1:
        return f"guided by the cost model {told[0]})"
    parts = [f"{text}, weight {share:.3f})" for text, share in zip(told, shares(models), strict=True)]
    return f"guided by the cost models {', '.join(parts[:-1])} and {parts[-1]}"


def _programs(count: int) -> str:
    return "1 program" if count == 1 else f"{count:,} programs"
