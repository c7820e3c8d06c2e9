"""LLVM's passes as data, lists of them as text, and the space of such lists."""

from planish.llvm.passes.catalogue import (
    Nesting,
    PassElement,
    elements,
    exclusions,
    find_element,
    vary,
)
from planish.llvm.passes.coreset import load_coreset
from planish.llvm.passes.effort import effort
from planish.llvm.passes.named_spaces import SPACES, oz_of, pass_space
from planish.llvm.passes.pipeline import available, parse_pipeline, print_pipeline
from planish.llvm.passes.random_lists import ListShape
from planish.llvm.passes.space import PassSpace
from planish.llvm.passes.step import Pass, candidate_of, passes_of

__all__ = [
    "SPACES",
    "ListShape",
    "Nesting",
    "Pass",
    "PassElement",
    "PassSpace",
    "available",
    "candidate_of",
    "effort",
    "elements",
    "exclusions",
    "find_element",
    "load_coreset",
    "oz_of",
    "parse_pipeline",
    "pass_space",
    "passes_of",
    "print_pipeline",
    "vary",
]
