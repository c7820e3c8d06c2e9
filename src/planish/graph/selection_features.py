"""Features of a selection: what the model is, which passes it runs where, and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from math import log2
from typing import TYPE_CHECKING

from planish.core import Candidate, FeatureSchema
from planish.graph.architecture.features import Features
from planish.graph.passes import SETTABLE, VALUES, Selection, passes_of_kind, selection_of
from planish.graph.passes.catalogue import REWRITING, RUNTIME

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OF_SELECTION = (
    "rewrites",  # rewriting passes, those that come again too
    "left out",  # passes of ONNX Runtime
    "offline",  # 1 where its work is kept as a file
    "threads",  # that the session is set to; 0 for the target's own
)
OF_REWRITE = (
    "times",  # that the pass comes
    "first",  # its first place, from 1; 0 where it does not come
    "after last",  # rewriting passes after its last place, and 1; 0 where it does not come
)
SHARES = ("depthwise_share", "pointwise_share", "residual_share")
COUNTS = tuple(field.name for field in fields(Features) if field.name != "operations")
"""Of the model's architecture, as log2(1 + x); `planish.graph.architecture.Features` says what they are."""


@cache
def selection_schema() -> FeatureSchema:
    """Name the columns: of the selection, each pass, each setting, and the model as it came."""
    rewrites = [f"{name} {each.name}" for each in passes_of_kind(*REWRITING) for name in OF_REWRITE]
    out = [f"without {each.name}" for each in passes_of_kind(*RUNTIME)]
    return FeatureSchema("graph/selection", 2, (*OF_SELECTION, *rewrites, *out, *_valued(), *COUNTS, *SHARES))


def selection_features(model: Features | None, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
    """Describe selections; (selections, width of `selection_schema()`).

    Args:
        model: what its graph is made of; None: nothing is told of it.
        candidates: legal ones.

    Raises:
        ScheduleError: one is not in the order of the steps.
        ProgramError: one has an unknown pass.
    """
    import numpy as np  # here: to import it takes long

    found = np.zeros((len(candidates), selection_schema().width), np.float32)
    if model is not None:
        counts = [log2(1 + getattr(model, name)) for name in COUNTS]
        shares = [getattr(model, name) for name in SHARES]
        found[:, -len(counts) - len(shares) :] = [*counts, *shares]
    for row, candidate in zip(found, candidates, strict=True):
        _describe(row, selection_of(candidate))
    return found


def _describe(row: NDArray[np.float32], chosen: Selection) -> None:
    names, settings = chosen.rewrites, chosen.session
    threads = int(settings.get("threads", 0))
    row[: len(OF_SELECTION)] = len(names), len(chosen.disabled), chosen.offline, threads
    for place, name in enumerate(names):
        column = _column()[f"times {name}"]
        row[column] += 1
        row[column + 1] = row[column + 1] or place + 1
        # Overwritten each time it comes: what stays is of the last place.
        row[column + 2] = len(names) - place
    for name in chosen.disabled:
        row[_column()[f"without {name}"]] = 1
    for name, value in settings.items():
        if name != "threads":
            row[_column()[f"{name}={value}"]] = 1


def _valued() -> list[str]:
    """Name the values of settings that are no numbers; none is 1 where the target's own holds."""
    return [f"{name}={value}" for name in SETTABLE if name != "threads" for value in VALUES[name]]


@cache
def _column() -> dict[str, int]:
    return {name: place for place, name in enumerate(selection_schema().names)}
