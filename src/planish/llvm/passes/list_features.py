"""Features of a pass list: what the module was like, and which passes the list has where."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from planish.core import Candidate, FeatureSchema
from planish.llvm.passes.catalogue import base_name, elements
from planish.llvm.passes.step import passes_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OF_LIST = (
    "passes",  # how many
    "pipelines",  # LLVM's own among them
    "different",  # passes, whatever their parameters
)
OF_PASS = (
    "times",  # that it comes
    "first",  # its first place, from 1; 0 where it does not come
    "after last",  # passes after its last place, and 1; 0 where it does not come
)


@cache
def list_schema() -> FeatureSchema:
    """Name the columns: those of the list, then AutoPhase's 56 of the module as it came, as log2(1 + x)."""
    from planish.llvm.features.autophase import FEATURES, VERSION  # with NumPy

    of_passes = [f"{name} {text}" for text in elements() for name in OF_PASS]
    of_module = [f"AutoPhase {VERSION}: {name}" for name in FEATURES]
    return FeatureSchema("llvm/list", 1, (*OF_LIST, *of_passes, *of_module))


def list_features(module: NDArray[np.int64], candidates: Sequence[Candidate]) -> NDArray[np.float32]:
    """Describe lists; (lists, width of `list_schema()`).

    Args:
        module: AutoPhase's features of the module as it came.
        candidates: lists; a pass that the catalogue does not have counts as one of the passes alone.
    """
    import numpy as np  # here: to import it takes long

    known, width = elements(), list_schema().width
    found = np.zeros((len(candidates), width), np.float32)
    found[:, width - len(module) :] = np.log2(1 + module)
    for row, candidate in zip(found, candidates, strict=True):
        texts = passes_of(candidate)
        pipelines = sum(known[text].is_pipeline for text in texts if text in known)
        row[: len(OF_LIST)] = len(texts), pipelines, len(set(map(base_name, texts)))
        for place, text in enumerate(texts):
            if text not in known:
                continue
            column = _columns()[text]
            row[column] += 1
            row[column + 1] = row[column + 1] or place + 1
            # Overwritten each time it comes: what stays is of the last place.
            row[column + 2] = len(texts) - place
    return found


@cache
def _columns() -> dict[str, int]:
    """Give the first column of each pass."""
    return {text: len(OF_LIST) + number * len(OF_PASS) for number, text in enumerate(elements())}
