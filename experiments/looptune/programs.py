"""What the shipped policy learns from; none of it is among the programs that it is judged by."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from planish.core import rng
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.space.cursor import CursorSpace
from planish.levels.loops.workloads import RESNET18, convolution, matmul, thesis_split
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

SEED = 20
MOST_FLOPS = 60e6
"""A larger program has schedules that take seconds, and teaches no more."""
KERNELS = ((1, 1), (1, 1), (1, 2), (3, 1), (3, 1), (3, 2), (5, 1))
"""Windows and strides of convolutions; those of 1 and 3 are the usual ones."""


def cursor_space(program: Program) -> CursorSpace:
    """Give LoopTune's space on one core of this machine."""
    level = LoopsLevel()
    space = level.space(task_of(level, program, Settings()), "steps")
    assert isinstance(space, CursorSpace)
    return space


def training_programs(matmuls: int, others: int) -> Iterator[Program]:
    """Give programs in a fixed order that mixes kinds, so that each beginning of it is a fair sample.

    Args:
        matmuls: of the thesis' part for training.
        others: products of any size, transposed and batched, and convolutions that are not ResNet-18's.
    """
    random = rng(SEED)
    known = thesis_split()[0]
    mine = [matmul(*known[place]) for place in random.permutation(len(known))[:matmuls]]
    drawn = (_drawn(number) for number in range(10 * others))
    rest = [*islice((program for program in drawn if program.flops <= MOST_FLOPS), others)]
    for number in range(max(len(mine), len(rest))):
        yield from mine[number : number + 1]
        yield from rest[number : number + 1]


def _drawn(number: int) -> Program:
    random = rng(SEED, number)
    m, n, k, b = (int(2 ** random.uniform(*bounds)) for bounds in ((3, 9), (3, 9), (3, 9), (1, 4)))
    kind = number % 6
    if kind < 2:
        return matmul(m, n, k)
    if kind == 2:
        a, c = ("A[k,m]", "B[k,n]") if number % 4 else ("A[m,k]", "B[n,k]")
        return parse(f"C[m,n] += {a} * {c}", {"m": m, "n": n, "k": k})
    if kind == 3:
        return parse("C[b,m,n] += A[b,m,k] * B[b,k,n]", {"b": b, "m": m, "n": n, "k": k})
    return _convolution(number)


def _convolution(number: int) -> Program:
    random = rng(SEED, number, 1)
    kernel, stride = KERNELS[int(random.integers(len(KERNELS)))]
    while True:
        size, inputs, outputs = (int(2 ** random.uniform(*bounds)) for bounds in ((3, 6), (3, 8), (3, 8)))
        if (size, inputs, outputs, kernel, stride) not in RESNET18.values():
            return convolution(size, inputs, outputs, kernel, stride)
