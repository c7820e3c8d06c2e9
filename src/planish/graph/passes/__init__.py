"""Graph passes as data, and selections of them."""

from planish.graph.passes.catalogue import (
    EXACT,
    GraphPass,
    Kind,
    exclusions,
    find_pass,
    passes,
    passes_of_kind,
)
from planish.graph.passes.step import (
    BY_OPENVINO,
    IN_BFLOAT16,
    SETTABLE,
    STEPS,
    VALUES,
    Disable,
    Offline,
    Rewrite,
    Selection,
    Set,
    selection,
    selection_of,
)

__all__ = [
    "BY_OPENVINO",
    "EXACT",
    "IN_BFLOAT16",
    "SETTABLE",
    "STEPS",
    "VALUES",
    "Disable",
    "GraphPass",
    "Kind",
    "Offline",
    "Rewrite",
    "Selection",
    "Set",
    "exclusions",
    "find_pass",
    "passes",
    "passes_of_kind",
    "selection",
    "selection_of",
]
