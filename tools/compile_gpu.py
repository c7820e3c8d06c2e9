"""Compilation of drawn GPU schedules with tensor cores, for several architectures, without a GPU.

    python tools/compile_gpu.py [--arch sm_80 --arch sm_90a --arch sm_100] [--schedules 100] [--seed 0]

Draws schedules of products in float16, bfloat16 and tf32 that have a `TensorTile` from the space of each
architecture, and compiles all of them; compiled kernels are cached, so that the same command continues where
it was interrupted. Prints, for each architecture and kind of step, how many were compiled, how many of those
spill registers, and what the compiler refuses, with the number of the draw. The exit code is 1 where it
refuses one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from planish.core import Candidate, ScheduleError, Target, TargetError, rng, usable_cores
from planish.levels.loops.gpu.cuda import compile_cuda, cuda_target
from planish.levels.loops.gpu.evaluator import source_for
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.gpu.steps import BulkCopies, SharedTile, TensorTile
from planish.levels.loops.gpu.tensor import GROUP, NARROW
from planish.levels.loops.lang.parse import parse

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
PRODUCTS = (
    ("C[m,n] += A[m,k] * B[k,n]", {"m": 1024, "n": 1024, "k": 1024}),
    ("C[m,n] += A[m,k] * B[n,k]", {"m": 512, "n": 768, "k": 256}),
    ("C[m,n] += A[k,m] * B[k,n]; D[m,n] = relu(C[m,n] + v[n])", {"m": 256, "n": 512, "k": 512}),
    ("C[b,m,n] += A[b,m,k] * B[b,k,n]", {"b": 12, "m": 200, "n": 328, "k": 64}),
)


def kind_of(candidate: Candidate) -> str:
    """Name what a schedule multiplies and copies by."""
    (tile,) = (step for step in candidate.steps if isinstance(step, TensorTile))
    if any(isinstance(step, BulkCopies) for step in candidate.steps):
        return f"{GROUP}, bulk copies"
    swizzled = any(isinstance(step, SharedTile) and step.swizzle for step in candidate.steps)
    return f"{tile.instruction}, swizzle" if swizzled and tile.instruction != GROUP else tile.instruction


def drawn(target: Target, count: int, seed: int) -> Iterator[tuple[int, Candidate, str]]:
    """Draw schedules with tensor cores: their number, themselves, and the source of their kernels."""
    spaces = [
        GpuSpace(parse(text, sizes, dtype=dtype), target) for text, sizes in PRODUCTS for dtype in NARROW
    ]
    number = found = 0
    while found < count:
        space = spaces[number % len(spaces)]
        number += 1
        try:
            candidate = space.sample(rng(seed, number))
        except ScheduleError:
            continue
        if any(isinstance(step, TensorTile) for step in candidate.steps):
            found += 1
            yield number, candidate, source_for(space.kernels(candidate), target)


def compiled(arch: str, one: tuple[int, Candidate, str]) -> tuple[str, str]:
    """Compile a schedule's kernels; return its kind, and "spills", "right" or what the compiler refuses."""
    number, candidate, source = one
    try:
        found = compile_cuda(source, arch)
    except TargetError as error:
        return kind_of(candidate), f"number {number}: {error}"
    return kind_of(candidate), "spills" if found.spills else "right"


def main() -> int:
    """Compile, and print the counts; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--arch", action="append", help="architectures")
    parser.add_argument("--schedules", type=int, default=100, help="of each architecture")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    refused = 0
    for arch in options.arch or ARCHITECTURES:
        target = cuda_target(arch)
        counts: dict[str, Counter[str]] = {}
        with ThreadPoolExecutor(usable_cores()) as pool:
            for kind, verdict in pool.map(
                partial(compiled, arch), drawn(target, options.schedules, options.seed)
            ):
                known = verdict in ("right", "spills")
                counts.setdefault(kind, Counter())[verdict if known else "refused"] += 1
                if not known:
                    print(f"{arch}: {verdict}", flush=True)
        for kind, found in sorted(counts.items()):
            whole = found["right"] + found["spills"]
            refused += found["refused"]
            line = f"{arch}, {kind}: {whole} compiled, {found['spills']} of them spill"
            print(f"{line}; {found['refused']} refused")
        sys.stdout.flush()
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
