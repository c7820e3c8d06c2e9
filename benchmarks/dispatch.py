"""What a call costs beside the kernel's own time: from Python, in native repetition, and with threads.

The kernel multiplies a few numbers by two; its parallel loop has one iteration for each thread. "cold" is a
call after a pause in which the waiting threads have gone to sleep. Run it on a quiet machine:
`python benchmarks/dispatch.py`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from planish.core import usable_cores
from planish.levels.loops.codegen.llvm.compile import compile_tree
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.runtime.kernels import BoundKernel, Kernel
from planish.levels.loops.steps import Parallel, Split


def bound(cores: int) -> BoundKernel:
    """Bind a kernel that does next to nothing."""
    program = parse("C[m] = A[m] * 2", {"m": 16 * max(2, cores)})
    schedule = Split("m", 16).apply(unscheduled(program))
    if cores > 1:
        schedule = Parallel("m:16").apply(schedule)
    tree = lower(schedule)
    a, c = (np.zeros(program.type[n].shape, np.float32) for n in "AC")
    return Kernel(program, tree, compile_tree(tree), cores).bind({"A": a}, {"C": c})


def median(call: Callable[[], object], times: int, pause_s: float = 0.0) -> float:
    """Give the median seconds of a call."""
    samples: list[float] = []
    for _ in range(times):
        time.sleep(pause_s)
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def main() -> None:
    """Print the table."""
    print(f"{'threads':>7} {'repeated':>12} {'called':>12} {'cold':>12}   (microseconds a call)")
    for cores in range(1, usable_cores() + 1):
        kernel = bound(cores)
        kernel.repeat(1000)
        repeated = median(lambda kernel=kernel: kernel.repeat(10_000), 20) / 10_000
        row = (repeated, median(kernel, 2000), median(kernel, 20, pause_s=0.02))
        print(f"{cores:>7} " + " ".join(f"{1e6 * s:>12.3f}" for s in row))


if __name__ == "__main__":
    main()
