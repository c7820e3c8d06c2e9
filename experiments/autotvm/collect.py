"""Trials of matmuls and convolutions that are in none of the tests and experiments, for the shipped model.

    python experiments/autotvm/collect.py [--store build/autotvm.db] [--programs 240] [--trials 160]

It goes on where it was stopped. `planish models fit --level loops --store build/autotvm.db` learns from them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from numpy.random import Generator

from planish.core import rng
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.workloads import RESNET18, convolution
from planish.store import open_store
from planish.tuning.api import tune_program
from planish.tuning.settings import Budget, Settings

LEAST, MOST = 2e5, 1.5e8
"""Additions and multiplications of a program: what takes longer costs more than it teaches."""
PRODUCTS = (
    "C[m,n] += A[m,k] * B[k,n]",
    "C[m,n] += A[m,k] * B[n,k]",
    "C[m,n] += A[k,m] * B[k,n]",
)
POPULATION = 32
"""Of the genetic searcher: a fifth of the trials is random, the others are near what is good."""


def programs() -> Iterator[Program]:
    """Draw programs without end: alternately a product and a convolution."""
    number = 0
    while True:
        generator = rng(1804, number)
        drawn = _product(generator) if number % 2 else _convolution(generator)
        number += 1
        if drawn is not None and LEAST <= drawn.flops <= MOST:
            yield drawn


def _product(generator: Generator) -> Program | None:
    """Draw a product; no power of two, and no multiple of 16, as those of tests and experiments are."""
    m, n, k = (int(2 ** generator.uniform(3, 10.5)) for _ in range(3))
    if any(extent % 16 == 0 for extent in (m, n, k)):
        return None
    text = PRODUCTS[int(generator.choice(3, p=(0.6, 0.2, 0.2)))]
    program = parse(text, {"m": m, "n": n, "k": k})
    return program.with_constants(["B"]) if generator.random() < 0.3 else program


def _convolution(generator: Generator) -> Program | None:
    size = int(2 ** generator.uniform(2.6, 7.2))
    inputs, outputs = (8 * int(2 ** generator.uniform(0, 6)) for _ in range(2))
    inputs = 3 if size > 90 else inputs
    kernel = int(generator.choice((1, 3, 5, 7), p=(0.35, 0.45, 0.1, 0.1)))
    drawn = (size, inputs, outputs, kernel, int(generator.integers(1, 3)))
    return None if drawn in RESNET18.values() or kernel > size else convolution(*drawn)


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--store", type=Path, default=Path("build/autotvm.db"))
    given.add_argument("--programs", type=int, default=240)
    given.add_argument("--first", type=int, default=0, help="so many are passed over")
    given.add_argument("--trials", type=int, default=160)
    asked = given.parse_args()
    level = LoopsLevel()
    # Without a model: what one holds for good would be most of what the next one learns from.
    settings = Settings(searcher="genetic", searcher_options={"population": POPULATION, "model": "none"})
    with open_store(asked.store) as store:
        for number, program in zip(range(asked.programs), programs(), strict=False):
            if number >= asked.first:
                budget = Budget(trials=asked.trials)
                result = tune_program(
                    level, program, budget=budget, settings=settings, store=store, compares=False
                )
                print(number, result.run.trials, program.text, flush=True)


if __name__ == "__main__":
    main()
