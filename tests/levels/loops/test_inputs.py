"""The inputs that kernels are verified on: no zeros, distinct magnitudes, exact sums."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.loops.random_programs import programs
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.inputs import (
    COARSEST,
    FINEST,
    MIXED,
    NEAR_ONE,
    POSITIVE,
    Style,
    all_styles,
    finest_levels,
    make_inputs,
)
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.workloads import matmul


@given(programs(points=300), st.integers(0, 9))
def test_they_are_aligned_and_repeat_and_none_is_zero(program: Program, seed: int) -> None:
    inputs, again = make_inputs(program, seed), make_inputs(program, seed)
    assert list(inputs) == list(program.inputs)
    for name, array in inputs.items():
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert (array.shape, array.dtype) == (program.type[name].shape, program.type[name].dtype)
        assert np.array_equal(array, again[name])
        assert (np.abs(array) >= 0.25).all()
        assert (np.abs(array) < 1).all()


@pytest.mark.parametrize("style", [MIXED, POSITIVE, NEAR_ONE, MIXED.scaled(16), Style(0.5, 1, "negative")])
def test_they_are_of_their_style(style: Style) -> None:
    program = matmul(64, 64, 64)
    for array in make_inputs(program, 3, dict.fromkeys(program.inputs, style)).values():
        assert style.low <= np.abs(array).min() < np.abs(array).max() < style.high
        share = {"mixed": 0.5, "positive": 0, "negative": 1}[style.signs]
        assert abs((array < 0).mean() - share) < 0.05
        assert len(np.unique(np.abs(array))) >= 16


def test_those_of_roots_and_divisors_are_positive() -> None:
    program = parse("T[i] = A[i] + B[i]; O[i] = log(T[i]) + C[i] / D[i]", {"i": 500})
    inputs = make_inputs(program)
    assert {name for name, array in inputs.items() if array.min() > 0} == {"A", "B", "D"}


@given(programs(points=300, functions=("abs", "relu", "max", "min", "sub"), reductions=("add", "max")))
def test_sums_and_products_of_them_are_exact(program: Program) -> None:
    for number, styles in enumerate(islice(all_styles(program, 1), 5)):
        answer = reference(program, make_inputs(program, number, styles))
        assert not any(expected.tolerance.any() for expected in answer.expected.values())


@pytest.mark.parametrize(
    ("text", "sizes", "levels"),
    [
        ("C[m,n] += A[m,k] * B[k,n]", {"m": 2, "n": 2, "k": 258}, 256),
        ("C[m,n] += A[m,k] * B[k,n]", {"m": 2, "n": 2, "k": 259}, 128),
        ("C[m] max= A[m,k]", {"m": 2, "k": 99}, FINEST),
        ("C[m] max= A[m,k] * B[k]", {"m": 2, "k": 99}, 1 << 12),
        ("C[] += A[i] * B[i]", {"i": 1 << 20}, 4),
        ("C[] += A[i] * B[i]", {"i": 1 << 24}, COARSEST),
        ("C[] += exp(A[i])", {"i": 9}, FINEST),
    ],
)
def test_they_are_as_fine_as_exact_sums_allow(text: str, sizes: dict[str, int], levels: int) -> None:
    program = parse(text, sizes)
    assert finest_levels(program, dict.fromkeys(program.inputs, 1.0)) == levels


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "qint8"])
@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_numbers_of_every_style_are_finite(dtype: str, rank: int) -> None:
    axes = "abcde"[:rank]
    index = ",".join(axes)
    # Products of products leave but few levels.
    text = f"S[] += X[{index}] * Y[{index}]; T[] = S[] * S[]; O[] = T[] * T[]"
    program = parse(text, dict.fromkeys(axes, 3), dtype=dtype)
    for number, styles in enumerate(islice(all_styles(program, 0), 24)):
        for array in make_inputs(program, number, styles).values():
            assert np.isfinite(array.astype(np.float64)).all()
