"""What a call of einsum takes from Python: NumPy's, `@`, planish's, and a bound kernel; all by default.

Whole calls, medians, by turns. `over` is what planish's call takes beyond the kernel that it runs, in
microseconds; `ratio` is its time to the better one of NumPy's two. Each case begins with an empty store, and
`first` is what its first call took in seconds. A case named by a number is a multiplication of square
float32 matrices. `python benchmarks/einsum.py --cases 16,32,64` runs some; run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import planish
from planish.core import ProgramError, usable_cores
from planish.einsum.contraction import contraction_of
from planish.einsum.decision import decided
from planish.einsum.planning import task_of
from planish.loops.compiled import CompiledKernel
from planish.loops.level import LoopsLevel
from planish.store import open_store
from side_by_side import interleaved

SIZES = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
Array = NDArray[Any]
Shape = tuple[int, ...]
OTHERS: dict[str, tuple[str, tuple[Shape, ...], str]] = {
    "transposed": ("km,kn->mn", ((256, 192), (256, 320)), "float32"),
    "turned": ("mk,kn->nm", ((128, 128), (128, 128)), "float32"),
    "double": ("mk,kn->mn", ((128, 128), (128, 128)), "float64"),
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
    if name.isdigit():
        subscripts, shapes, dtype = "mk,kn->mn", ((int(name),) * 2,) * 2, "float32"
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


def measure(name: str, folder: Path, budget_s: float) -> None:
    """Tune a case, time it, and print its line."""
    subscripts, operands = case(name)
    place = folder / f"{name}.db"
    start = time.perf_counter()
    planish.einsum(subscripts, *operands, budget_s=budget_s, store=place)
    first = time.perf_counter() - start
    calls: dict[str, Callable[[], object]] = {
        "numpy": lambda: np.einsum(subscripts, *operands),
        "planish": lambda: planish.einsum(subscripts, *operands),
    }
    product = multiplied(subscripts, operands)
    if product is not None:
        calls["@"] = product
    chosen, kernel = way_of(subscripts, operands, place)
    if kernel is not None:
        bound = planish.kernel(subscripts, *operands, store=place)
        calls["bound"] = lambda: bound(*operands)
        calls["kernel"] = alone(kernel, operands)
    times = {n: 1e6 * s for n, s in interleaved(calls, 1.0, block_s=2e-3).items()}
    best = min(times[n] for n in ("numpy", "@") if n in times)
    over = f"{times['planish'] - times['kernel']:>7.2f}" if "kernel" in times else f"{'':>7}"
    columns = " ".join(f"{times[n]:>10.2f}" if n in times else f"{'':>10}" for n in COLUMNS)
    print(f"{name:<11}{columns} {over} {times['planish'] / best:>6.2f} {first:>6.2f}  {chosen}", flush=True)


COLUMNS = ("numpy", "@", "planish", "bound", "kernel")


def way_of(subscripts: str, operands: list[Array], place: Path) -> tuple[str, CompiledKernel | None]:
    """Tell how the case is computed, by the store: what was chosen, and the kernel if it is one."""
    try:
        contraction = contraction_of(subscripts, operands)
    except ProgramError:
        return "NumPy: no kernel for such operands", None
    for cores in {usable_cores(), 1}:
        task = task_of(contraction, cores)
        with open_store(place) as store:
            found = store.best_result(task, LoopsLevel().steps)
        if found is not None:
            call = found.data["call"]
            way = decided(found, contraction, task, [])
            kernel = way.call if way is not None else None
            text = f"{call['way']}, cores {call['cores']}, kernels {call['kernels']}"
            return text, kernel if isinstance(kernel, CompiledKernel) else None
    return "?", None


def alone(compiled: CompiledKernel, operands: list[Array]) -> Callable[[], object]:
    """Bind the kernel to arrays that are there, which is all but the kernel's own time."""
    program = compiled.kernel.program
    inputs = {
        n: a.transpose(s.order) for n, a, s in zip(program.inputs, operands, compiled.operands, strict=True)
    }
    result = compiled.result.empty().transpose(compiled.result.order)
    return compiled.kernel.bind(inputs, {program.outputs[0]: result})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time einsum.")
    parser.add_argument("--cases", default=",".join((*map(str, SIZES), *OTHERS)), help="sizes and names")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of the first call")
    options = parser.parse_args()
    print(f"{'case':<11}{' '.join(f'{c:>10}' for c in COLUMNS)} {'over':>7} {'ratio':>6} {'first':>6}  way")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.cases.split(","):
            measure(name, Path(folder), options.budget)


if __name__ == "__main__":
    main()
