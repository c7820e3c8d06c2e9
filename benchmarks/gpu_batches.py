"""Batches of GPU kernels for known workloads, compiled here and measured where the GPU is.

`python benchmarks/gpu_batches.py DIR --target cuda:sm_90a` writes a folder for each workload, and needs no
GPU: the convolutions C1 to C12 of ResNet-18 and products (figure 10 of AutoTVM's paper has that of 1024),
products in float16 and TF32 for tensor cores, those of attention, four convolutions by Winograd's algorithm,
and sums.
On the machine with the GPU, `planish measure DIR/*` verifies and times them. `--list` names the workloads.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from planish.core import Task
from planish.levels.loops.gpu.batch import write_batch
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import RESNET18, convolution, matmul, winograd

PRODUCTS = (256, 512, 1024, 2048, 4096, 8192)
TYPES = ("float16", "tf32")
"""Of products for tensor cores."""
NARROW = TYPES[0]
HEADS, DEPTH = 16, 64
"""Of attention."""
WINOGRAD = ("C2", "C6", "C9", "C12")
"""Convolutions that are computed by Winograd's algorithm, too."""


def workloads() -> Mapping[str, Callable[[], Program]]:
    """Return name to what makes the program."""
    found: dict[str, Callable[[], Program]] = {n: partial(convolution, *c) for n, c in RESNET18.items()}
    for n in PRODUCTS:
        found[f"matmul-{n}"] = partial(matmul, n, n, n)
        found |= {f"matmul-{n}-{dtype}": partial(matmul, n, n, n, dtype) for dtype in TYPES}
    for n in (512, 2048):
        sizes = {"h": HEADS, "q": n, "k": n, "d": DEPTH}
        scores, values = "S[h,q,k] += Q[h,q,d] * K[h,k,d]", "O[h,q,d] += P[h,q,k] * V[h,k,d]"
        found[f"attention-scores-{n}"] = partial(parse, scores, sizes, dtype=NARROW)
        found[f"attention-values-{n}"] = partial(parse, values, sizes, dtype=NARROW)
    found |= {f"winograd-{name}": partial(winograd, *RESNET18[name][:3]) for name in WINOGRAD}
    sizes = {"m": 4096, "n": 4096}
    found["row-sums"] = partial(parse, "S[m] += X[m,n]", sizes)
    found["column-sums"] = partial(parse, "S[n] += X[m,n]", sizes)
    found["softmax"] = partial(parse, "S[m] += exp(X[m,n]); Y[m,n] = exp(X[m,n]) / S[m]", sizes)
    return found


def main() -> int:
    """Write the batches; return the exit code."""
    known = workloads()
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--trials", type=int, default=200, help="candidates of each workload")
    parser.add_argument("--only", action="append", choices=sorted(known), metavar="NAME", help="workloads")
    parser.add_argument("--list", action="store_true", help="name the workloads, and write nothing")
    options = parser.parse_args()
    if options.list or options.folder is None:
        print("\n".join(known))
        return 0
    level = LoopsLevel()
    for name in options.only or known:
        program = replace(known[name](), backend=options.target)
        target = level.target(program, 1)
        start = time.monotonic()
        task = Task(program, target, (level.objectives["time_s"],), level.version)
        found = write_batch(task, options.trials, 0, options.folder / name)
        seconds = time.monotonic() - start
        print(
            f"{name}: {found.kept} kept, {found.spilled} spill, {found.refused} refused, {seconds:.0f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
