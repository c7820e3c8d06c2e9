"""Graph passes as data, and selections of them."""

from planish.graph.passes.catalogue import (
    GraphPass,
    Kind,
    exclusions,
    find_pass,
    passes,
    passes_of_kind,
)
from planish.graph.passes.step import (
    STEPS,
    Disable,
    Offline,
    Rewrite,
    Selection,
    selection,
    selection_of,
)

__all__ = [
    "STEPS",
    "Disable",
    "GraphPass",
    "Kind",
    "Offline",
    "Rewrite",
    "Selection",
    "exclusions",
    "find_pass",
    "passes",
    "passes_of_kind",
    "selection",
    "selection_of",
]
