"""The peak arithmetic rate of one core, measured as the thesis does (3.6.3): by kernels of high intensity."""

from __future__ import annotations

import time
from functools import cache

from planish.core import Candidate
from planish.loops.build import compile_with, tree_of
from planish.loops.lang.parse import parse
from planish.loops.reference.inputs import aligned, make_inputs
from planish.loops.runtime.kernels import Kernel
from planish.loops.steps import Reorder, Split
from planish.measure import exclusive

# 24 results in registers of AVX-512, or 12 in those of AVX2: operands have the rest.
_TILES = ((12, 32), (6, 64), (8, 48), (6, 16), (4, 24))
_DEPTH = 256
_SECONDS, _QUICK_SECONDS = 0.02, 0.002


@cache
def measured_peak(backend: str, dtype: str = "float32") -> float:
    """Measure the peak of one core in GFLOPS.

    The kernels are register tiles of a matrix multiplication whose operands stay in the first-level
    cache, repeated; the best of them all counts.

    Args:
        backend: one of `planish.loops.backends.PREFERRED`.
        dtype: the element type.
    """
    return measure_peak(backend, dtype)


def measure_peak(backend: str, dtype: str) -> float:
    """Measure the peak anew; see `measured_peak`."""
    return max(_rate(backend, dtype, m, n) for m, n in _TILES)


@cache
def quick_peak(backend: str, dtype: str = "float32") -> float:
    """Measure the peak of one core in GFLOPS within some milliseconds, by one kernel; see `measured_peak`."""
    return _rate(backend, dtype, *_TILES[0 if "512" in backend else 3], seconds=_QUICK_SECONDS)


def _rate(backend: str, dtype: str, rows: int, columns: int, seconds: float = _SECONDS) -> float:
    columns //= 1 if dtype == "float32" else 2
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 2 * rows, "n": columns, "k": _DEPTH}, dtype=dtype)
    schedule = Candidate((Split("m", rows), Reorder((f"m:{rows}", "k", "m", "n"))))
    tree = tree_of(program, schedule)
    outputs = {name: aligned(program.type[name]) for name in program.outputs}
    bound = Kernel(program, tree, compile_with(backend, tree)).bind(make_inputs(program), outputs)
    best = float("inf")
    calls = 20
    with exclusive():
        bound.repeat(calls)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            bound.repeat(calls)
            best = min(best, (time.perf_counter() - start) / calls)
    return program.flops / best / 1e9
