"""Microseconds from candidate to features, by what they are spent on; in batches of 128.

`python benchmarks/features.py`. Processor time, the median of several rounds over one batch.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

from planish.core import rng
from planish.loops.build import schedule_of
from planish.loops.features.fixed_width import row_of
from planish.loops.ir.annotated import Vectors
from planish.loops.lang.parse import parse
from planish.loops.lang.program import Program
from planish.loops.lower.lowering import lower
from planish.loops.lower.physical import annotate
from planish.loops.space import TemplateSpace
from planish.loops.target import this_machine

BATCH, ROUNDS = 128, 9
VECTORS = Vectors(16, 32, masks=True)
PROGRAMS = {
    "matmul 512": parse("C[m,n] += A[m,k] * B[k,n]", {"m": 512, "n": 512, "k": 512}),
    "convolution 3x3": parse(
        "O[f,y,x] += I[c,y+r,x+s] * W[f,c,r,s]", {"f": 64, "y": 56, "x": 56, "c": 64, "r": 3, "s": 3}
    ),
    "softmax": parse(
        "M[r] max= X[r,c]; S[r] += exp(X[r,c] - M[r]); Y[r,c] = exp(X[r,c] - M[r]) / S[r]",
        {"r": 512, "c": 1000},
    ),
}

In = TypeVar("In")
Out = TypeVar("Out")


def timed(work: Callable[[In], Out], batch: list[In]) -> tuple[float, list[Out]]:
    """Do the work for each of a batch; gives the microseconds for one of them, and the results."""
    samples: list[float] = []
    found: list[Out] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        found = [work(one) for one in batch]
        samples.append(time.process_time() - start)
    return statistics.median(samples) / len(batch) * 1e6, found


def measure(name: str, program: Program) -> None:
    """Print a program's line."""
    target = this_machine(1)
    machine = target.machine
    assert machine is not None
    space = TemplateSpace(program, target)
    candidates = [space.sample(rng(1, index)) for index in range(BATCH)]
    replay, schedules = timed(lambda candidate: schedule_of(program, candidate), candidates)
    lowering, trees = timed(lower, schedules)
    annotating, annotated = timed(lambda tree: annotate(tree, VECTORS), trees)
    reading, _ = timed(lambda tree: row_of(tree, machine), annotated)
    whole, _ = timed(lambda one: space.features([one]), candidates)
    parts = (replay, lowering, annotating, reading, whole)
    print(f"{name:16}" + "".join(f"{part:>10.0f}" for part in parts))


def main() -> None:
    """Print the table."""
    titles = ("replay", "lower", "annotate", "read", "in all")
    print(f"{'us a candidate':16}" + "".join(f"{title:>10}" for title in titles))
    for name, program in PROGRAMS.items():
        measure(name, program)


if __name__ == "__main__":
    main()
