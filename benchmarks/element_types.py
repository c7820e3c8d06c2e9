"""A matrix multiplication by the type of its elements, on each back end, beside NumPy's of float32; one core.

The kernels are default schedules of the template space, without a search, on square matrices. `ratio` is the
rate over that of NumPy's float32. Run it on a quiet machine: `python benchmarks/element_types.py --size 512`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from planish.core import Target
from planish.levels.loops.backends import available_backends, compile_with, tree_of
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.runtime.kernels import BoundKernel, Kernel
from planish.levels.loops.space.template import TemplateSpace
from side_by_side import interleaved, use_one_core

TYPES = ("float32", "float16", "bfloat16", "bfloat16,C=float32", "int8", "int32")


def main() -> None:
    """Time and print."""
    parser = argparse.ArgumentParser(description="Products by element type.")
    parser.add_argument("--size", type=int, default=512, help="rows and columns")
    parser.add_argument("--seconds", type=float, default=10, help="for all of them")
    options = parser.parse_args()
    use_one_core()
    n = options.size
    kernels = {(b, t): guess(n, b, t) for b in available_backends() for t in TYPES}
    a, out = np.ones((n, n), np.float32), np.empty((n, n), np.float32)
    calls = {f"{backend:12}{dtype}": bound for (backend, dtype), bound in kernels.items()}
    rival = f"{'numpy':12}float32"
    times = interleaved(
        {**calls, rival: lambda: np.matmul(a, a, out=out)}, options.seconds, clock=time.process_time
    )
    print(f"{'':34}{'ms':>8}{'G/s':>8}{'ratio':>8}")
    for name, seconds in times.items():
        rate = 2 * n**3 / seconds / 1e9
        print(f"{name:34}{1e3 * seconds:8.3f}{rate:8.1f}{times[rival] / seconds:8.2f}")


def guess(n: int, backend: str, dtype: str) -> BoundKernel:
    """Build the default schedule of a product of n by n matrices."""
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": n, "n": n, "k": n}, dtype=dtype)
    target = Target("", frozenset({backend}), 1, {"backend": backend})
    tree = tree_of(program, TemplateSpace(program, target).start())
    outputs = {name: aligned(program.type[name]) for name in program.outputs}
    return Kernel(program, tree, compile_with(backend, tree)).bind(make_inputs(program), outputs)


if __name__ == "__main__":
    main()
