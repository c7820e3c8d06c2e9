"""Element type and processor of a schedule, as columns of its features and of what policies observe."""

from __future__ import annotations

from collections.abc import Callable

from planish.core import Machine
from planish.levels.loops.lang.program import DTYPES, Program

CACHES = 3
CONTEXT = (
    "element bytes",  # of what is computed with
    "float element",  # 1 for floating point, 0 for integers
    "cores",
    "vector bytes",
    "vector registers",
    *(f"KiB of cache {level}" for level in range(1, CACHES + 1)),  # 0 where there is none
    "peak",  # GFLOPS of a core in float32; 0 where it is not known
)
"""Whole numbers; those of the processor are 0 where nothing is known of it."""


Peak = Callable[[], int]
"""Returns the peak of a core in GFLOPS, which is measured when it is first asked for."""


def unknown_peak() -> int:
    """Return 0."""
    return 0


def context_of(
    program: Program, machine: Machine | None, cores: int, peak: Peak = unknown_peak
) -> tuple[int, ...]:
    """Return the numbers of `CONTEXT`.

    Args:
        program: what is scheduled.
        machine: where it runs; None where that is not known.
        cores: how many may be used; 0 where that is not known.
        peak: of the machine.
    """
    element = DTYPES[program.arithmetic], int("float" in program.arithmetic)
    if machine is None:
        return (*element, cores, *[0] * (len(CONTEXT) - len(element) - 1))
    caches = [found.size >> 10 if (found := machine.cache(1 + n)) else 0 for n in range(CACHES)]
    return (*element, cores, machine.vector_bytes, machine.vector_registers, *caches, peak())
