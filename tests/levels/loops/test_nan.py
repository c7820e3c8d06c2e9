"""max, min and what is made of them pass on what is not a number, as NumPy does, in every back end."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.levels.loops.backends import available_backends
from planish.levels.loops.build import compile_with
from planish.levels.loops.ir.schedule import Schedule, unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.inputs import aligned
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.steps import Reorder, Split, Vectorize
from planish.testing.interpreter import interpret

Array = NDArray[Any]
BACKENDS = available_backends()
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
both = pytest.mark.parametrize("dtype", ["float32", "float64"])
everywhere = pytest.mark.parametrize("backend", BACKENDS)


def _run(schedule: Schedule, backend: str, inputs: Mapping[str, Array]) -> Array:
    program, tree = schedule.program, lower(schedule)
    (name,) = program.outputs
    output = aligned(program.type[name])
    Kernel(program, tree, compile_with(backend, tree)).bind(inputs, {name: output})()
    return output


def _agree(program: Program, inputs: Mapping[str, Array], expected: Array) -> None:
    """Look at the reference and the interpreter too."""
    (name,) = program.outputs
    np.testing.assert_array_equal(reference(program, inputs)[name], expected)
    found = interpret(lower(unscheduled(program)), inputs)[name]
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


@everywhere
@both
@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_by_elements(backend: str, dtype: str, value: str, expected: Callable[[Array, Array], Array]) -> None:
    program = parse(f"O[i] = {value}", {"i": len(PAIRS)}, dtype=dtype)
    a, b = (np.ascontiguousarray(column.astype(dtype)) for column in PAIRS.T)
    inputs = {name: {"A": a, "B": b}[name] for name in program.inputs}
    with np.errstate(invalid="ignore"):
        wanted = expected(a, b)
    np.testing.assert_array_equal(_run(unscheduled(program), backend, inputs), wanted)
    _agree(program, inputs, wanted)


@everywhere
@both
@pytest.mark.parametrize("reduce", ["max", "min"])
@pytest.mark.parametrize("size", [1, 7, 19, 37])
def test_one_bad_element_anywhere(backend: str, dtype: str, reduce: str, size: int) -> None:
    """Each row has it in another place; over rows, over columns and over all, in vectors and their tails."""
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
            got = _run(each, backend, {"A": rows})
            np.testing.assert_array_equal(got, expected, err_msg=each.text)
        if size < 8:
            _agree(program, {"A": rows}, expected)


@everywhere
def test_a_row_without_one_is_not_touched(backend: str) -> None:
    rows = np.linspace(-1, 1, 40 * 40, dtype=np.float32).reshape(40, 40)
    rows[3, 39], rows[7, 0] = np.nan, np.inf
    program = parse("O[i] max= A[i,j] * 2; P[i,j] = A[i,j] - O[i]", {"i": 40, "j": 40})
    got = _run(unscheduled(program), backend, {"A": rows})
    with np.errstate(invalid="ignore"):
        expected = rows - (2 * rows).max(axis=1, keepdims=True)
    np.testing.assert_allclose(got, expected, rtol=1e-6)
