"""Lower bounds of run times by the roofline model, and the machine's peak arithmetic rate.

A kernel that takes less time than the machine's peak rates allow does not do its work. Only work that every
kernel does is counted: the multiplications and additions of contractions, and each byte of outputs and of
inputs that are read as a whole. The bound is the roofline of Williams, Waterman and Patterson (2009). The
peak of arithmetic is measured as the thesis does (3.6.3), by kernels of high arithmetic intensity; that of
the first-level cache is derived from it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

from planish.core import Candidate, PlanishError, StageClock, processor
from planish.core.files import cache_folder, replace_text
from planish.levels.loops.backends import compile_with, preferred_backend, tree_of
from planish.levels.loops.lang.draft import axes_of
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import DTYPES as BYTES
from planish.levels.loops.lang.program import Access, Apply, Program, Statement, accesses
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.steps import Reorder, Split, Vectorize
from planish.measure import exclusive

# Peak

# 24 results in registers of AVX-512, or 12 in those of AVX2: operands have the rest.
_TILES = ((12, 32), (6, 64), (8, 48), (6, 16), (4, 24))
_DEPTH = 256
_ROW_BYTES = 1 << 14
_SECONDS, _QUICK_SECONDS = 0.02, 0.002


def measure_peak(backend: str, dtype: str = "float32") -> float:
    """Measure the peak of one core in GFLOPS.

    The kernels are register tiles of a matrix multiplication whose operands stay in the first-level
    cache, repeated; the best of them all counts.

    Args:
        backend: one of `planish.levels.loops.backends.PREFERRED`.
        dtype: the element type.
    """
    return max(_rate(backend, dtype, m, n) for m, n in _TILES)


measured_peak = cache(measure_peak)
"""`measure_peak`, once for each back end and type."""


@cache
def machine_peak(backend: str) -> int:
    """Return the peak of a core of this machine in GFLOPS in float32; 0 where it cannot be measured.

    It is measured once, within some milliseconds by one kernel, and kept in the user's cache, so that
    features are the same in each process.

    Args:
        backend: whose kernels are measured.
    """
    try:
        path: Path | None = cache_folder() / "peaks.json"
    except PlanishError:
        path = None
    known, name = _read_peaks(path), f"{processor()}, {backend}"
    if name not in known:
        try:
            known[name] = max(1, round(quick_peak(backend)))
        except PlanishError:  # another package's back end, which compiles other programs
            return 0
        if path is not None:
            with suppress(OSError):
                replace_text(path, json.dumps(known) + "\n")
    return known[name]


def _read_peaks(path: Path | None) -> dict[str, int]:
    """Read the peaks that were measured; a damaged file has none."""
    try:
        read: Any = json.loads(path.read_text(encoding="utf-8")) if path else {}
        return {str(name): int(peak) for name, peak in read.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


@cache
def quick_peak(backend: str, dtype: str = "float32") -> float:
    """Measure the peak of one core in GFLOPS within some milliseconds, by one kernel; see `measured_peak`."""
    return _rate(backend, dtype, *_TILES[0 if "512" in backend else 3], seconds=_QUICK_SECONDS)


def _rate(backend: str, dtype: str, rows: int, columns: int, seconds: float = _SECONDS) -> float:
    columns //= 1 if dtype == "float32" else 2
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 2 * rows, "n": columns, "k": _DEPTH}, dtype=dtype)
    schedule = Candidate((Split("m", rows), Reorder((f"m:{rows}", "k", "m", "n"))))
    return program.flops / _least_time(backend, program, schedule, seconds, calls=20) / 1e9


@cache
def quick_bandwidth(backend: str, bytes_read: int) -> float:
    """Measure how fast one core reads a matrix of some bytes, in GB/s, within some milliseconds.

    It multiplies the matrix by a vector, 16 rows side by side, as weights that are used once are read.
    """
    program = parse("C[n] += A[k] * B[n,k]", {"n": bytes_read // _ROW_BYTES, "k": _ROW_BYTES // 4})
    order = Reorder(("n:16", "k:16", "n", "k"))
    schedule = Candidate((Vectorize("k"), Split("n", 16), Split("k", 16), order))
    return bytes_read / _least_time(backend, program, schedule, _SECONDS, calls=1) / 1e9


def _least_time(backend: str, program: Program, schedule: Candidate, seconds: float, calls: int) -> float:
    """Return the least seconds of a call, among as many calls as some seconds allow."""
    tree = tree_of(program, schedule)
    outputs = {name: aligned(program.type[name]) for name in program.outputs}
    bound = Kernel(program, tree, compile_with(backend, tree)).bind(make_inputs(program), outputs)
    best = float("inf")
    with exclusive():
        bound.repeat(calls)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            bound.repeat(calls)
            best = min(best, (time.perf_counter() - start) / calls)
    return best


# Bounds

MARGIN = 1.5
"""Multiple of the measured peak that a kernel may reach: the clock rate of a core varies."""
SLOW = 2.0
"""GFLOPS of one core below which no peak is measured: every processor with vectors is faster."""
BYTES_PER_FLOP = 6.0
"""Bytes that a core loads and stores at most in the time of a floating-point operation, at the peaks of both.

With one unit for multiply-add, which is two operations, a core loads two vectors and stores one meanwhile: 12
bytes for each lane of 4. With two units it is half of that.
"""
_AT_ONCE = {"int8": 4.0}
"""Products of a type in an instruction, as multiples of those in float32; with AVX512_VNNI."""


class Roofline:
    """The least time that a program takes on this machine.

    Args:
        program: what is computed.
        cores: how many may compute it.
        peaks: measure the peak, the quickest first.
    """

    def __init__(
        self,
        program: Program,
        cores: int,
        peaks: Sequence[Callable[[str, str], float]] = (quick_peak, measure_peak),
    ) -> None:
        self._peaks = peaks
        self._work = least_work(program) / cores / MARGIN / 1e9
        self._dtype = _peak_dtype(program)
        self._peak = SLOW

    def refuses(self, seconds: float, clock: StageClock) -> str | None:
        """Describe why a time is too short; None if it is possible.

        The peak is measured only for times that are short enough to need it: within some milliseconds at
        first, and thoroughly before a time is refused, since the machine may have been busy.

        Args:
            seconds: the time of a call.
            clock: what measures the peak is its stage "run"; nothing else waits for the machine.
        """
        for measure in self._peaks:
            if seconds * self._peak >= self._work:
                return None
            with clock("run"):
                self._peak = max(self._peak, measure(preferred_backend(), self._dtype))
        if seconds * self._peak >= self._work:
            return None
        return (
            f"a call took {seconds:.3g} s, but at {MARGIN} times this machine's peak of {self._peak:.0f} "
            f"GFLOPS a core it takes {self._work / self._peak:.3g} s: the timed calls did not do their work"
        )


class DeviceRoofline:
    """The least time that a program takes on a device whose peaks are known, and whose last cache is empty.

    Args:
        program: what is computed.
        gflops: peak of its arithmetic.
        bandwidth: GB/s from memory.
    """

    def __init__(self, program: Program, gflops: float, bandwidth: float) -> None:
        read = _complete_tensors(program) - {*program.outputs}
        seconds = _arithmetic(program) / gflops, _bytes_of(program, read) / bandwidth
        self._least = max(seconds) / MARGIN / 1e9

    def refuses(self, seconds: float, clock: StageClock) -> str | None:
        """Describe why a time is too short; None if it is possible."""
        del clock
        if seconds >= self._least:
            return None
        return (
            f"a call took {seconds:.3g} s, but at {MARGIN} times the peaks of such a device it takes "
            f"{self._least:.3g} s: the timed calls did not do their work"
        )


def _peak_dtype(program: Program) -> str:
    return "float64" if program.arithmetic == "float64" else "float32"


def least_seconds(program: Program, cores: int) -> float:
    """Return the seconds that a program takes at least, at the measured peak of this machine."""
    peak = measured_peak(preferred_backend(), _peak_dtype(program))
    return least_work(program) / cores / peak / 1e9


def least_work(program: Program) -> float:
    """Count the floating-point operations that take, at the peak, as long as a program at least."""
    return max(_arithmetic(program), _bytes_of(program, _complete_tensors(program)) / BYTES_PER_FLOP)


def _arithmetic(program: Program) -> float:
    """Count the floating-point operations of the contractions."""
    return sum(_operations(s, program) for s in program.statements)


def _bytes_of(program: Program, tensors: set[str]) -> int:
    return sum(program.type[t].size * BYTES[program.type[t].dtype] for t in tensors)


def _operations(statement: Statement, program: Program) -> float:
    """Count those of a contraction, each of whose points is a product of its own."""
    match statement:
        case Statement(
            reduce="add", value=Apply(function="mul", args=(Access(pad=None) as a, Access(pad=None) as b))
        ):
            pass
        case _:
            return 0.0
    both = set(axes_of(a)) & set(axes_of(b))
    if not (set(statement.reduced_axes) <= both and set(axes_of(a)) | set(axes_of(b)) == set(statement.axes)):
        return 0.0
    at_once = max(_AT_ONCE.get(program.type[x.tensor].dtype, 1.0) for x in (a, b))
    return 2.0 * prod(program.size[axis] for axis in statement.axes) / at_once


def _complete_tensors(program: Program) -> set[str]:
    """Return the names of the outputs, and the inputs of which every element is read."""
    found = {*program.outputs}
    for access in (a for s in program.statements for a in accesses(s.value) if a.tensor in program.inputs):
        plain = [i for i in access.index if i.offset == 0 and [c for _, c in i.terms] == [1]]
        axes, shape = [index.terms[0][0] for index in plain], program.type[access.tensor].shape
        if len(set(axes)) == len(shape) and tuple(program.size[axis] for axis in axes) == shape:
            found.add(access.tensor)
    return found
