"""max, min and what is made of them pass on what is not a number, as NumPy does, in every back end."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from levels.loops.running import Array, both, check_others, everywhere, run
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.steps import Reorder, Split, Vectorize

SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0)
PAIRS = np.array(list(itertools.product(SPECIAL, SPECIAL)))
"""49 pairs: a vector's worth three times, and a tail, for each element type and back end."""
VALUES: list[tuple[str, Callable[[Array, Array], Array]]] = [
    ("max(A[i], B[i])", np.maximum),
    ("min(A[i], B[i])", np.minimum),
    ("relu(A[i])", lambda a, _: np.maximum(a, 0)),
    ("max(A[i], 0.5)", lambda a, _: np.maximum(a, 0.5)),
    ("max(0.5, A[i])", lambda a, _: np.maximum(a, 0.5)),
    ("min(A[i], 0.5)", lambda a, _: np.minimum(a, 0.5)),
    ("min(0.5, A[i])", lambda a, _: np.minimum(a, 0.5)),
    ("min(max(A[i], -1), B[i])", lambda a, b: np.minimum(np.maximum(a, -1), b)),
    ("where(A[i] < B[i], A[i], 2)", lambda a, b: np.where(a < b, a, 2)),
    ("where(A[i] <= B[i], 2, B[i])", lambda a, b: np.where(a <= b, 2, b)),
    ("where(A[i] > B[i], A[i], B[i])", lambda a, b: np.where(a > b, a, b)),
    ("where(A[i] >= B[i], A[i], B[i])", lambda a, b: np.where(a >= b, a, b)),
    ("where(A[i] == B[i], 1, B[i])", lambda a, b: np.where(a == b, 1, b)),
    ("where(A[i] != B[i], A[i], 3)", lambda a, b: np.where(a != b, a, 3)),
    ("where(A[i], B[i], 3)", lambda a, b: np.where(a, b, 3)),
    ("A[i] < B[i]", lambda a, b: np.where(a < b, 1, 0)),
    ("(A[i] != 0) * (B[i] >= 1)", lambda a, b: (a != 0) * (b >= 1) * 1.0),
    ("max(A[i] + B[i], min(A[i], B[i]))", lambda a, b: np.maximum(a + b, np.minimum(a, b))),
]


@everywhere
@both
@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_by_elements(backend: str, dtype: str, value: str, expected: Callable[[Array, Array], Array]) -> None:
    program = parse(f"O[i] = {value}", {"i": len(PAIRS)}, dtype=dtype)
    a, b = (np.ascontiguousarray(column.astype(dtype)) for column in PAIRS.T)
    inputs = {name: {"A": a, "B": b}[name] for name in program.inputs}
    with np.errstate(invalid="ignore"):
        wanted = expected(a, b)
    np.testing.assert_array_equal(run(program, inputs, backend), wanted)
    check_others(program, inputs, wanted)


@pytest.mark.slow(after=24)
@everywhere
@both
@pytest.mark.parametrize("reduce", ["max", "min"])
@pytest.mark.parametrize("size", [1, 7, 19, 37])
def test_one_bad_element_anywhere(backend: str, dtype: str, reduce: str, size: int) -> None:
    """Each row has it at another index; over rows, over columns and over all, in vectors and their tails."""
    rows = np.linspace(-2, 2, size * size).reshape(size, size).astype(dtype)
    np.fill_diagonal(rows, np.nan)
    rows[0, 0] = -np.inf if reduce == "max" else np.inf
    fold = np.max if reduce == "max" else np.min
    for target, axis in (("O[i]", 1), ("O[j]", 0), ("O[]", None)):
        program = parse(f"{target} {reduce}= A[i,j]", {"i": size, "j": size}, dtype=dtype)
        schedule = unscheduled(program)
        others = [Vectorize("i").apply(schedule), Vectorize("j").apply(schedule)] if size > 1 else []
        if size > 8:
            others.append(Reorder(("j:8", "i", "j")).apply(Split("j", 8).apply(schedule)))
        expected = fold(rows, axis=axis)
        for each in (schedule, *others):
            got = run(each, {"A": rows}, backend)
            np.testing.assert_array_equal(got, expected, err_msg=each.text)
        if size < 8:
            check_others(program, {"A": rows}, expected)


@everywhere
def test_a_row_without_one_is_not_touched(backend: str) -> None:
    rows = np.linspace(-1, 1, 40 * 40, dtype=np.float32).reshape(40, 40)
    rows[3, 39], rows[7, 0] = np.nan, np.inf
    program = parse("O[i] max= A[i,j] * 2; P[i,j] = A[i,j] - O[i]", {"i": 40, "j": 40})
    got = run(program, {"A": rows}, backend)
    with np.errstate(invalid="ignore"):
        expected = rows - (2 * rows).max(axis=1, keepdims=True)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
