"""Whether a pipeline gives the same code each time that it is run."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack, closing

from planish.llvm.backend import Module

RUNS = 3
"""A pass that goes by addresses in memory was caught by so many runs wherever it was by twelve."""


def reproduces(original: Module, made: Module, pipeline: str) -> bool:
    """Run a pipeline again, and compare what is printed.

    What was made before stays open meanwhile: a clone that takes the place of a closed one in memory has
    its addresses too, and differences are missed.

    Args:
        original: what the pipeline starts from; it stays as it is.
        made: what it made, in the first of `RUNS` runs.
        pipeline: as `opt -passes=` takes it.

    Raises:
        PassError: LLVM refuses it.
    """
    expected = fingerprint(made)
    with ExitStack() as stack:
        for _ in range(RUNS - 1):
            again = stack.enter_context(closing(original.clone()))
            again.run(pipeline)
            if fingerprint(again) != expected:
                return False
    return True


def fingerprint(module: Module) -> bytes:
    """Give the hash of what is printed of a module."""
    return hashlib.sha256(module.text().encode(errors="surrogateescape")).digest()
