"""What a tenth of a second gives on an einsum's first use, beside a whole one.

`first` is what the first use took with either budget, in a process that has used another einsum before.
`share` is the speed of what a tenth of a second chose to what a whole one did: both are timed alternately, by
the thread's processor time. Libraries are kept to one thread, since NumPy's wait for work for 0.1 s after
each multiplication, and kernels are compared when they sleep. Run it on a quiet machine:
`python benchmarks/einsum_first_use.py`.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import planish
from side_by_side import geomean, interleaved, use_one_core

Array = NDArray[Any]
BUDGETS = {"quick": 0.1, "long": 1.0}
CASES: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (
    ("mk,kn->mn", (128, 128), (128, 128)),
    ("mk,kn->mn", (200, 100), (100, 300)),
    ("mk,kn->mn", (512, 512), (512, 512)),
    ("mk,kn->mn", (64, 64), (64, 1000)),
    ("mk,kn->mn", (1000, 1000), (1000, 1000)),
    ("km,kn->mn", (256, 192), (256, 320)),
    ("bmk,bkn->bmn", (16, 64, 64), (16, 64, 64)),
    ("bhqd,bhkd->bhqk", (2, 4, 64, 32), (2, 4, 64, 32)),
    ("abc,cd->abd", (8, 32, 64), (64, 96)),
    ("ij,i->j", (500, 600), (500,)),
)


def main() -> None:
    """Print a line for each case."""
    use_one_core()
    generator, shares, firsts = np.random.default_rng(0), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        small = generator.random((8, 8), dtype=np.float32)
        planish.kernel("ij,jk", small, small, cores=1, store=Path(folder) / "first.db")
        for subscripts, *shapes in CASES:
            operands = [generator.random(shape, dtype=np.float32) for shape in shapes]
            took, share = compared(subscripts, operands, Path(folder))
            shares.append(share)
            firsts.append(took["quick"])
            name = f"{subscripts} {' '.join(map(str, shapes))}"
            print(
                f"{name:<48} first {took['quick']:.2f} and {took['long']:.2f} s   share {share:.3f}",
                flush=True,
            )
    title, middle = "median, geometric mean", statistics.median(firsts)
    print(f"{title:<48} first {middle:.2f} s   share {geomean(shares):.3f}")


def compared(subscripts: str, operands: list[Array], folder: Path) -> tuple[dict[str, float], float]:
    """Give the seconds of the first use by budget, and the quick one's share of the long one's speed."""
    took, kernels = dict[str, float](), dict[str, Any]()
    for name, budget in BUDGETS.items():
        start = time.perf_counter()
        store = folder / f"{name}.db"
        kernels[name] = planish.kernel(subscripts, *operands, budget_s=budget, cores=1, store=store)
        took[name] = time.perf_counter() - start
    calls = {name: lambda kernel=kernel: kernel(*operands) for name, kernel in kernels.items()}
    seconds = interleaved(calls, 0.5, 1e-3, time.thread_time)
    return took, seconds["long"] / seconds["quick"]


if __name__ == "__main__":
    main()
