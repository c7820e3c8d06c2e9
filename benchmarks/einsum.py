"""What a call of einsum takes from Python: NumPy's, `@`, planish's, and a bound kernel; all by default.

Whole calls, medians, in microseconds. Each block of calls begins when no thread of the process runs
(OpenBLAS's look for work for 0.1 s after a multiplication, and would slow down what comes next), with a
call that does not count. The order differs from round to round. A round in which a thread had no core for a
part of the time, because others wanted it, is left out if enough others are left; `rounds` tells how many
count, of how many.

`over` is what planish's call takes beyond the kernel that it runs, `bound` what a bound kernel's takes.
`ratio` is the time of planish's call to the better one of NumPy's two, and `control` that of the same NumPy
call, timed once more: how far it is from 1 is luck. Each case begins with an empty store, and `first` is
what its first call took in seconds; before that, one of another shape has loaded the libraries, except for
`--cold`. A case named by a number is a multiplication of square matrices: 64 of float32, 64d of float64.
`python benchmarks/einsum.py --cases 16,32,64d` runs some; run it on a quiet machine.

`--alternated` compares planish's call with `@` in blocks, and then call by call alternately, as programs call
them that use both: OpenBLAS's threads still look for work then, and have the processors that planish's want.
Medians and means; a ratio above 1 says that planish's call is the shorter one, and the last line has their
geometric means. OpenBLAS runs as it does by default: settings of its core type are removed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import planish
from planish.core import ProgramError, usable_cores
from planish.einsum.backends import contraction_of
from planish.einsum.planning import read_history, stored_backend, task_of
from planish.levels.loops.runtime.dispatch import CompiledKernel
from planish.measure import wait_for_idle_threads
from planish.store import open_store
from side_by_side import REST_S, geomean, rested

SIZES = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
SQUARES = tuple(f"{size}{kind}" for size in SIZES for kind in ("", "d"))
BESIDE = ("128", "192", "256", "384", "512", "768", "256d", "transposed")
"""Cases of `--alternated`: those that are worth two cores."""
BLOCK_S = 3e-3
"""Seconds of a block of `--alternated`, which has at least so many:"""
LEAST_BLOCKS = 3
CORE_TYPES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
SLOW = 4.0
"""NumPy's einsum is timed no further where it takes so many times as long as `@`."""
COLUMNS = ("numpy", "@", "planish", "bound", "kernel")
Array = NDArray[Any]
Shape = tuple[int, ...]
OTHERS: dict[str, tuple[str, tuple[Shape, ...], str]] = {
    "transposed": ("km,kn->mn", ((256, 192), (256, 320)), "float32"),
    "turned": ("mk,kn->nm", ((128, 128), (128, 128)), "float32"),
    "batched": ("bmk,bkn->bmn", ((16, 64, 64), (16, 64, 64)), "float32"),
    "attention": ("bhqd,bhkd->bhqk", ((2, 4, 64, 32), (2, 4, 64, 32)), "float32"),
    "grouped": ("abc,cd->abd", ((8, 32, 64), (64, 96)), "float32"),
    "matvec": ("mk,k->m", ((512, 512), (512,)), "float32"),
    "vecmat": ("k,kn->n", ((512,), (512, 512)), "float32"),
    "inner": ("i,i->", ((4096,), (4096,)), "float32"),
    "outer": ("i,j->ij", ((300,), (400,)), "float32"),
    "rows": ("ij->i", ((500, 600),), "float32"),
    "columns": ("ij->j", ((500, 600),), "float32"),
    "total": ("ij->", ((500, 600),), "float64"),
    "scaled": ("ij,i->ij", ((300, 400), (300,)), "float32"),
    "three": ("ij,jk,kl->il", ((24, 24), (24, 24), (24, 24)), "float64"),
    "view": ("ij->ji", ((64, 64),), "float32"),
    "diagonal": ("ii->i", ((64, 64),), "float32"),
    "integers": ("ij,jk->ik", ((32, 32), (32, 32)), "int64"),
}


def case(name: str) -> tuple[str, list[Array]]:
    """Give a case's subscripts and operands."""
    size = name.removesuffix("d")
    if size.isdigit():
        dtype = "float64" if name.endswith("d") else "float32"
        subscripts, shapes = "mk,kn->mn", ((int(size),) * 2,) * 2
    else:
        subscripts, shapes, dtype = OTHERS[name]
    rng = np.random.default_rng(0)
    return subscripts, [(8 * rng.standard_normal(shape)).astype(dtype) for shape in shapes]


def multiplied(subscripts: str, operands: list[Array]) -> Callable[[], object] | None:
    """Write the case with `@`, where people would."""
    a, b = operands[0], operands[-1]
    if subscripts in ("mk,kn->mn", "bmk,bkn->bmn", "mk,k->m", "k,kn->n", "i,i->", "abc,cd->abd"):
        return lambda: a @ b
    if subscripts == "km,kn->mn":
        return lambda: a.T @ b
    if subscripts == "bhqd,bhkd->bhqk":
        return lambda: a @ b.swapaxes(-1, -2)
    return None


def measure(name: str, folder: Path, budget_s: float, seconds: float) -> None:
    """Tune a case, time it, and print its line."""
    subscripts, operands = case(name)
    place = folder / f"{name}.db"
    start = time.perf_counter()
    planish.einsum(subscripts, *operands, budget_s=budget_s, store=place)
    first = time.perf_counter() - start
    chosen, kernel = way_of(subscripts, operands, place)
    calls = calls_of(subscripts, operands, place, kernel)
    # The machine is not locked: einsum may still decide anew, and its workers would wait for the lock.
    found, rounds = rested(calls, seconds)
    times = {n: 1e6 * statistics.median(values) for n, values in found.items()}
    over = "".join(
        f"{times[n] - times['kernel']:>8.2f}" if "kernel" in times else " " * 8 for n in ("planish", "bound")
    )
    ratio, control = (over_best(found, calls, n) for n in ("planish", "control"))
    columns = " ".join(f"{times[n]:>10.2f}" if n in times else f"{'':>10}" for n in COLUMNS)
    print(
        f"{name:<11}{columns} {over} {ratio:>6.2f} {control:>7.2f} {first:>6.2f} {rounds:>7}  {chosen}",
        flush=True,
    )


def over_best(found: Mapping[str, list[float]], calls: Mapping[str, object], name: str) -> float:
    """Divide a call's time by that of the better one of NumPy's."""
    best = min(statistics.median(found[n]) for n in ("numpy", "@") if n in calls)
    return statistics.median(found[name]) / best


def calls_of(
    subscripts: str, operands: list[Array], place: Path, kernel: CompiledKernel | None
) -> dict[str, Callable[[], object]]:
    """Give what is timed."""
    numpys: dict[str, Callable[[], object]] = {"numpy": lambda: np.einsum(subscripts, *operands)}
    product = multiplied(subscripts, operands)
    if product is not None:
        numpys["@"] = product
    least = {n: min(seconds_of(call) for _ in range(3)) for n, call in numpys.items()}
    best = min(numpys, key=lambda n: least[n])
    calls = {n: call for n, call in numpys.items() if least[n] <= SLOW * least[best]}
    calls |= {"control": numpys[best], "planish": lambda: planish.einsum(subscripts, *operands)}
    if kernel is not None:
        bound = planish.kernel(subscripts, *operands, store=place)
        calls |= {"bound": lambda: bound(*operands), "kernel": alone(kernel, operands)}
    return calls


def seconds_of(call: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def way_of(subscripts: str, operands: list[Array], place: Path) -> tuple[str, CompiledKernel | None]:
    """Tell how the case is computed, by the store: what was chosen, and the kernel if it is one."""
    try:
        contraction = contraction_of(subscripts, operands)
    except ProgramError:
        return "NumPy: no kernel for such operands", None
    for cores in {usable_cores(), 1}:
        task = task_of(contraction, cores)
        with open_store(place) as store:
            found = read_history(store, task)
        if found.decision is not None:
            call = found.call
            backend = stored_backend(found, contraction, task, [])
            kernel = backend.call if backend is not None else None
            text = f"{call['backend']}, cores {call['cores']}, kernels {call['kernels']}"
            return text, kernel if isinstance(kernel, CompiledKernel) else None
    return "?", None


def alone(compiled: CompiledKernel, operands: list[Array]) -> Callable[[], object]:
    """Bind the kernel to arrays that are there, which is all but the kernel's own time."""
    program = compiled.kernel.program
    inputs = {
        n: a.transpose(s.order) for n, a, s in zip(program.inputs, operands, compiled.operands, strict=True)
    }
    result = np.empty(compiled.result.tensor.shape, compiled.result.dtype)
    return compiled.kernel.bind(inputs, {program.outputs[0]: result})


def alternate(name: str, folder: Path, budget_s: float, seconds: float) -> tuple[float, float, float]:
    """Tune a case, time it beside `@`, print its line, and return the ratios.

    Returns:
        The time of `@` to that of planish's call: in blocks, and alternately the medians and the means.
    """
    subscripts, operands = case(name)
    product = multiplied(subscripts, operands)
    assert product is not None
    planish.einsum(subscripts, *operands, budget_s=budget_s, store=folder / f"{name}.db")
    calls = (product, lambda: planish.einsum(subscripts, *operands))
    count = max(3, int(BLOCK_S / min(seconds_of(product) for _ in range(3))))
    blocks: tuple[list[float], list[float]] = ([], [])
    turns: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(blocks[0]) < LEAST_BLOCKS:
        for call, times in zip(calls, blocks, strict=True):
            wait_for_idle_threads(REST_S)
            call()
            call()
            times.append(statistics.fmean(seconds_of(call) for _ in range(count)))
        for _ in range(2 * count):
            for call, times in zip(calls, turns, strict=True):
                times.append(seconds_of(call))
    medians = [[1e6 * statistics.median(t) for t in pair] for pair in (blocks, turns)]
    means = [1e6 * statistics.fmean(t) for t in turns]
    ratios = medians[0][0] / medians[0][1], medians[1][0] / medians[1][1], means[0] / means[1]
    columns = " ".join(f"{t:>10.2f}" for t in (*medians[0], *medians[1], *means))
    print(f"{name:<11}{columns} " + " ".join(f"{r:>6.2f}" for r in ratios), flush=True)
    return ratios


def print_alternated(names: list[str], folder: Path, budget_s: float, seconds: float) -> None:
    """Print the table of `--alternated`."""
    heads = ("@ block", "block", "@ turns", "turns", "@ mean", "mean")
    print(f"{'case':<11}{' '.join(f'{h:>10}' for h in heads)}  block  turns   mean")
    ratios = [alternate(name, folder, budget_s, seconds) for name in names]
    print(f"{'geomean':<77}" + " ".join(f"{geomean(column):>6.2f}" for column in zip(*ratios, strict=True)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time einsum.")
    parser.add_argument("--cases", help="sizes and names")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of the first call")
    parser.add_argument("--seconds", type=float, default=2.0, help="for timing a case")
    parser.add_argument("--cold", action="store_true", help="load the libraries within the first first call")
    parser.add_argument("--alternated", action="store_true", help="interleaved with @, call by call")
    options = parser.parse_args()
    names = (
        options.cases.split(",") if options.cases else BESIDE if options.alternated else (*SQUARES, *OTHERS)
    )
    if options.alternated and any(os.environ.pop(name, None) for name in CORE_TYPES):
        os.execv(sys.executable, [sys.executable, *sys.argv])  # OpenBLAS has read them already
    with tempfile.TemporaryDirectory() as folder:
        if not options.cold:
            planish.einsum("ab,bc->ac", np.ones((9, 9)), np.ones((9, 9)), store=Path(folder) / "warm.db")
        if options.alternated:
            print_alternated(list(names), Path(folder), options.budget, options.seconds)
            return
        print(
            f"{'case':<11}{' '.join(f'{c:>10}' for c in COLUMNS)} {'over':>8}{'bound':>8} {'ratio':>6} "
            f"control {'first':>6} {'rounds':>7}  backend"
        )
        for name in names:
            measure(name, Path(folder), options.budget, options.seconds)


if __name__ == "__main__":
    main()
