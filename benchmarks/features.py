"""Microseconds from candidate to features, in batches of 128.

`python benchmarks/features.py`. Processor time, the median of several rounds. "new" are neighbors of the
last round's candidates, as a search makes them; "again" the same once more; "mutate" is the making; "predict"
is what the shipped model takes for one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from planish.core import Candidate, rng
from planish.levels.loops.backends import this_machine
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.space.template import TemplateSpace
from planish.models.model_files import model_named
from planish.search.rounds import neighbor

BATCH, ROUNDS = 128, 9
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
TITLES = ("mutate", "new", "again", "predict")

In = TypeVar("In")
Out = TypeVar("Out")


def timed(work: Callable[[In], Out], batch: In) -> tuple[float, Out]:
    """Do work on a batch; gives the microseconds for one of it, and the result."""
    start = time.process_time()
    found = work(batch)
    return (time.process_time() - start) / BATCH * 1e6, found


def main() -> None:
    """Print the table."""
    print(f"{'us a candidate':16}" + "".join(f"{title:>10}" for title in TITLES))
    for name, program in PROGRAMS.items():
        rounds = _rounds(program)
        parts = [statistics.median(part) for part in zip(*rounds, strict=True)]
        print(f"{name:16}" + "".join(f"{part:>10.0f}" for part in parts))


def _rounds(program: Program) -> list[Sequence[float]]:
    target = this_machine(1)
    space = TemplateSpace(program, target)
    candidates = [space.sample(rng(1, index)) for index in range(BATCH)]
    space.features(candidates)
    model = model_named("loops", space.schema)
    found: list[Sequence[float]] = []
    draw = rng(2)

    def mutated(batch: list[Candidate]) -> list[Candidate]:
        return [neighbor(space, candidate, draw) or candidate for candidate in batch]

    for _ in range(ROUNDS):
        mutate, candidates = timed(mutated, candidates)
        (new, _), (again, rows) = (timed(space.features, candidates) for _ in range(2))
        predict, _ = timed(model.predicts.predict, rows)
        found.append((mutate, new, again, predict))
    return found


if __name__ == "__main__":
    main()
