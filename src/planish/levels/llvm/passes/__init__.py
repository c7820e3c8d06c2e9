"""LLVM's passes as data, lists of them as text, and the space of such lists."""

from planish.levels.llvm.passes.catalogue import (
    Nesting,
    PassElement,
    elements,
    exclusions,
    find_element,
    load_coreset,
    pass_cost,
    vary,
)
from planish.levels.llvm.passes.pipeline import (
    Pass,
    available,
    candidate_of,
    parse_pipeline,
    passes_of,
    print_pipeline,
)
from planish.levels.llvm.passes.space import SPACES, ListShape, PassSpace, oz_of, pass_space

__all__ = [
    "SPACES",
    "ListShape",
    "Nesting",
    "Pass",
    "PassElement",
    "PassSpace",
    "available",
    "candidate_of",
    "elements",
    "exclusions",
    "find_element",
    "load_coreset",
    "oz_of",
    "parse_pipeline",
    "pass_cost",
    "pass_space",
    "passes_of",
    "print_pipeline",
    "vary",
]
