"""Axes as numbers, and where the greatest or the least is: on every back end, against NumPy."""

import numpy as np
import pytest

from levels.loops.running import Array, both, check_others, everywhere, run
from planish.core.errors import ProgramError
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.notation import Axis, Tensor, argmax, axes, position, program, where
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.reference.cases import choose_cases
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.steps import Parallel, Reorder, Split, Vectorize


@everywhere
@both
@pytest.mark.parametrize("size", [1, 2, 7, 16, 37, 1000])
def test_an_axis_is_a_number(backend: str, dtype: str, size: int) -> None:
    made = parse("O[j,i] = 2 * i + X[j,i] - j", {"i": size, "j": 3}, dtype=dtype)
    x = np.linspace(-1, 1, 3 * size).reshape(3, size).astype(dtype)
    expected = np.add(2 * np.arange(size), x, dtype=dtype) - np.arange(3, dtype=dtype)[:, None]
    schedules = [unscheduled(made)]
    if size > 8:
        schedules.append(Reorder(("i:8", "j", "i")).apply(Split("i", 8).apply(schedules[0])))
        schedules.append(Parallel("i:8").apply(schedules[-1]))
        schedules.append(Vectorize("j").apply(schedules[0]))
    for schedule in schedules:
        got = run(schedule, {"X": x}, backend, cores=2)
        np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=schedule.text)


@everywhere
@both
def test_causal_scores(backend: str, dtype: str) -> None:
    n = 21
    s = np.random.default_rng(0).standard_normal((n, n)).astype(dtype)
    made = parse("T[q,k] = where(k <= q, S[q,k], -inf)", {"q": n, "k": n}, dtype=dtype)
    got = run(made, {"S": s}, backend)
    np.testing.assert_array_equal(got, np.where(np.tri(n, dtype=bool), s, -np.inf))


def rows(dtype: str, size: int) -> Array:
    """Each row has something of its own: equal numbers, NaN, infinities, zeros of both signs."""
    found = np.random.default_rng(size).integers(-3, 4, (11, size)).astype(dtype)
    found[0] = 5
    found[1, size // 2 :] = np.nan
    found[2] = -np.inf
    found[3] = np.inf
    found[4, -1], found[5, 0] = 9, 9
    found[6, size // 3], found[7, 2 * size // 3] = -9, 9
    found[8], found[8, size // 2 :] = 0.0, -0.0
    return found


@everywhere
@both
@pytest.mark.parametrize(
    "size", [3, 16, 37, *(pytest.param(size, marks=pytest.mark.slow) for size in (8, 19, 300))]
)
@pytest.mark.parametrize("function", ["argmax", "argmin"])
def test_the_first_of_equals(backend: str, dtype: str, size: int, function: str) -> None:
    x = rows(dtype, size)
    for text, axis in (("O[i] = {}(X[i,k])", 1), ("O[k] = {}(X[i,k])", 0)):
        made = parse(text.format(function), {"i": 11, "k": size}, dtype=dtype)
        expected = getattr(np, function)(x, axis=axis)
        schedules = [unscheduled(made), Vectorize("i").apply(unscheduled(made))]
        if size > 8:
            schedules.append(Split("k", 8).apply(schedules[0]))
        for schedule in schedules:
            got = run(schedule, {"X": x}, backend)
            np.testing.assert_array_equal(got, expected, err_msg=schedule.text)
        check_others(made, {"X": x}, expected)


@everywhere
def test_of_a_product(backend: str) -> None:
    """It is computed once: a value that is rounded in two ways would be equal to itself nowhere."""
    a, b = np.random.default_rng(0).standard_normal((2, 17, 23)).astype(np.float32)
    made = parse("O[i] = argmax(A[i,k] * B[i,k] + exp(A[i,k]))", {"i": 17, "k": 23})
    exact = a.astype(float) * b + np.exp(a.astype(float))
    got = run(made, {"A": a, "B": b}, backend)
    np.testing.assert_array_equal(got, exact.argmax(axis=1))


def test_in_an_expression_and_in_python() -> None:
    i, k = axes("i k")
    X, O = Tensor("X", shape=(4, 6)), Tensor("O")  # noqa: E741
    O[i] = argmax(X[i, k]) * 0.5 + position(i)
    made = program(O)
    assert made == parse("O[i] = argmax(X[i,k]) * 0.5 + i", {"i": 4, "k": 6})
    assert parse_canonical(made.text) == made
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    np.testing.assert_array_equal(reference(made, {"X": x})["O"], x.argmax(1) * 0.5 + np.arange(4))


def test_an_axis_with_a_size_of_its_own() -> None:
    i = Axis("i", 5)
    O = Tensor("O")  # noqa: E741
    O[i] = where(position(i) < 2, 1, 0)
    made = program(O)
    assert made.text == "O[i] = where(i < 2, 1, 0) | i=5 | O:float32[5]"
    assert made.inputs == ()
    assert parse_canonical(made.text) == made


def test_an_axis_that_is_too_long_to_count_is_refused() -> None:
    sizes = {"i": 2**24 + 2}
    with pytest.raises(ProgramError, match="has 16,777,218 elements, but float32 counts to 16,777,216"):
        parse("O[] max= X[i] + i", sizes)
    assert parse("O[] max= X[i] + i", sizes, dtype="float64").size == sizes
    assert parse("O[] max= X[i]", sizes).size == sizes


@pytest.mark.parametrize("function", ["argmax", "argmin"])
def test_inputs_have_equals(function: str) -> None:
    """A kernel that takes the last of equals is found out on the sets that are chosen."""
    made = parse(f"O[i] = {function}(X[i,k])", {"i": 20, "k": 9})
    of = np.argmax if function == "argmax" else np.argmin
    last = [8 - of(case.inputs["X"][:, ::-1], axis=1) for case in choose_cases(made, 0)]
    right = [of(case.inputs["X"], axis=1) for case in choose_cases(made, 0)]
    assert any((a != b).any() for a, b in zip(last, right, strict=True))
