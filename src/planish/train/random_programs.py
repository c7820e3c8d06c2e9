"""Random programs of the level `loops`, from which cost models learn; tests and benchmarks have others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from numpy.random import Generator

from planish.core import rng
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.workloads import RESNET18, convolution

LEAST, MOST = 2e5, 1.5e8
"""Additions and multiplications of a program: what takes longer costs more than it teaches."""
PRODUCTS = (
    "C[m,n] += A[m,k] * B[k,n]",
    "C[m,n] += A[m,k] * B[n,k]",
    "C[m,n] += A[k,m] * B[k,n]",
)
SHIPPED = 1804
"""Seed of the programs that the shipped model has learnt from."""


def random_programs(seed: int) -> Iterator[Program]:
    """Draw programs without end: alternately a product and a convolution."""
    for number in count():
        generator = rng(seed, number)
        drawn = _product(generator) if number % 2 else _convolution(generator)
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
