"""The reference against single points, and its tolerance against right and wrong kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from levels.loops import brute
from levels.loops.random_programs import programs
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.cases import choose_cases, special_cases
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.workloads import RESNET18, matmul, workload

BLOCKS = [7, 100, 1 << 20]


def real_inputs(program: Program, seed: int) -> dict[str, NDArray[Any]]:
    """Inputs of no quantum, so that sums are not exact."""
    rng = np.random.default_rng(seed)
    near = rng.uniform(0.9, 1.1)
    return {name: (array * near).astype(array.dtype) for name, array in make_inputs(program, seed).items()}


@settings(max_examples=examples(150))
@given(programs(points=400), st.integers(0, 9), st.sampled_from(BLOCKS))
def test_reference_is_what_the_points_give(program: Program, seed: int, block: int) -> None:
    inputs = make_inputs(program, seed)
    answer = reference(program, inputs, block)
    for name, expected in brute.run(program, inputs).items():
        np.testing.assert_allclose(answer[name], expected, rtol=1e-9, atol=1e-9)
        assert answer[name].shape == program.type[name].shape


@settings(max_examples=examples(100))
@given(programs(points=250), st.integers(0, 9), st.booleans(), st.sampled_from(BLOCKS))
def test_any_order_of_a_reduction_passes(program: Program, seed: int, real: bool, block: int) -> None:
    inputs = real_inputs(program, seed) if real else make_inputs(program, seed)
    number = np.dtype(program.types[0][1].dtype).type
    with np.errstate(under="ignore"):
        got = brute.run(program, inputs, number, np.random.default_rng(seed))
    assert check(program, got, reference(program, inputs, block)) is None


@settings(max_examples=examples(60))
@given(programs(points=300), st.integers(0, 9), st.data())
def test_an_element_that_is_off_fails(program: Program, seed: int, data: st.DataObject) -> None:
    inputs = make_inputs(program, seed)
    answer = reference(program, inputs)
    name = program.outputs[0]
    got = {n: np.array(v, program.type[n].dtype) for n, v in answer.items()}
    position = data.draw(st.tuples(*(st.integers(0, n - 1) for n in got[name].shape)))
    assume(np.isfinite(got[name][position]))
    got[name][position] += 0.01 * max(1.0, abs(got[name][position]))
    message = check(program, got, answer)
    assert message is not None
    assert message.startswith(f"{name}[{', '.join(map(str, position))}] is ")
    assert f"1 of {got[name].size} elements" in message


@pytest.mark.parametrize("name", [*RESNET18, "MM-512", "DWCONV-1"])
def test_kernels_of_the_papers_must_be_exact(name: str) -> None:
    program = workload(name)
    assert not reference(program, make_inputs(program)).expected[program.outputs[0]].tolerance.any()


def test_a_sum_that_lacks_one_term_fails() -> None:
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 8, "n": 8, "k": 4608})
    inputs = make_inputs(program)
    got = {"C": (inputs["A"][:, 1:] @ inputs["B"][1:]).astype(np.float32)}
    assert check(program, got, reference(program, inputs))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (None, "output C is missing"),
        (np.zeros((3, 4)), "C is float64[3, 4], not float32[3, 4]"),
        (np.zeros((4, 3), np.float32), "C is float32[4, 3], not float32[3, 4]"),
        (np.full((3, 4), np.nan, np.float32), "C[0, 0] is nan, not "),
    ],
)
def test_what_is_wrong_is_said(array: NDArray[Any] | None, message: str) -> None:
    program = matmul(3, 4, 5)
    got = {} if array is None else {"C": array}
    assert (check(program, got, reference(program, make_inputs(program))) or "").startswith(message)


def test_infinities_and_nan_must_be_met_as_they_are() -> None:
    program = parse("O[i] = exp(A[i] * 1000); P[i] = log(B[i])", {"i": 3})
    inputs = {"A": np.array([1, -1, 0], np.float32), "B": np.array([-1, 0, 1], np.float32)}
    answer = reference(program, inputs)
    right = {"O": np.array([np.inf, 0, 1], np.float32), "P": np.array([np.nan, -np.inf, 0], np.float32)}
    assert check(program, right, answer) is None
    for name, position in (("O", 0), ("P", 0), ("P", 1)):
        for wrong in (
            5.0,
            -np.inf if name == "O" else np.inf,
            np.nan if position != 0 or name == "O" else 0.0,
        ):
            got = {n: array.copy() for n, array in right.items()}
            got[name][position] = wrong
            assert (check(program, got, answer) or "").startswith(f"{name}[{position}] is {wrong:g}, not ")


@pytest.mark.parametrize(
    "text",
    ["O[] += log(A[i])", "O[] *= log(A[i])", "O[] += sqrt(exp(A[i]) - 5) * B[i]", "O[] += exp(A[i]) / C[i]"],
)
def test_nan_and_infinities_of_inexact_values_are_not_accepted_blindly(text: str) -> None:
    program = parse(text, {"i": 3})
    inputs = {"A": [1.5, -2, 3], "B": [1, 2, 3], "C": [0, 1, 2]}
    answer = reference(program, {n: np.array(inputs[n], np.float32) for n in program.inputs})
    assert not np.isfinite(answer["O"])
    assert check(program, {"O": answer["O"].astype(np.float32)}, answer) is None
    assert check(program, {"O": np.array(1, np.float32)}, answer)


@pytest.mark.parametrize(
    "text", ["T[i] = exp(A[i]) - exp(A[i]); O[] += 1 / T[i]", "O[] += log(exp(80 * A[i]))"]
)
def test_where_rounding_or_overflow_decides_nothing_is_known(text: str) -> None:
    program = parse(text, {"i": 3})
    answer = reference(program, {"A": np.array([1.5, -2, 3], np.float32)})
    assert answer.expected["O"].testable == 0
    for value in (np.nan, np.inf, 7):
        assert check(program, {"O": np.array(value, np.float32)}, answer) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_that_every_kernel_makes_decide_comparisons(dtype: str) -> None:
    text = (
        "E[i] = where(exp(A[i]) != 0, 5, 7); S[i] = where(sqrt(B[i]) <= 0, 5, 7); "
        "M[i] = where(B[i] * A[i] == 0, 5, 7); D[i] = where(B[i] / A[i] == 0, 5, 7)"
    )
    program = parse(text, {"i": 3}, dtype=dtype)
    inputs = {"A": np.array([-1e4, -104, 1.1], dtype), "B": np.array([0, 1e-30, 3.3], dtype)}
    expected = reference(program, inputs).expected
    for name, known, unsure in (("E", [7, 5], 1), ("S", [5, 7], 1), ("M", [5, 7], None), ("D", [5, 7], None)):
        array, tolerance = expected[name].value, expected[name].tolerance
        assert array[[0, 2]].tolist() == known
        assert tolerance[[0, 2]].max() < 1e-6
        if unsure is not None and dtype == "float32" and name == "E":
            assert tolerance[unsure] >= 1  # subnormal: arithmetic may make a zero of it


def test_the_bound_follows_intermediate_tensors() -> None:
    program = parse("T[m] += A[m,k]; O[m] = exp(T[m]) / (1 + T[m] * T[m])", {"m": 4, "k": 50})
    expected = reference(program, real_inputs(program, 0)).expected["O"]
    assert 0 < expected.tolerance.max() < 0.01 * abs(expected.value).max()


@pytest.mark.parametrize(("factor", "accepts_nan"), [(-7.9e-31, True), (-7.9e-3, False)])
def test_a_product_that_vanishes_in_float32_makes_nan_of_an_infinity(
    factor: float, accepts_nan: bool
) -> None:
    """-6e-61 is 0 for a kernel that multiplies A by B first; one that multiplies B by C first has -inf."""
    program = parse("O[i] += A[k] * B[k] * C[k,i]", {"i": 3, "k": 2})
    values = np.array([[1, 2, np.inf], [3, 4, np.inf]], np.float32)
    a, b = (np.array([1, last], np.float32) for last in (factor, 7.9e-31))
    a[0] = 0.5 if accepts_nan else -0.5  # so that the infinities that are certain do not cancel
    answer = reference(program, {"A": a, "B": b, "C": values})
    first = values[0] * a[0]
    for last, accepted in ((np.nan, accepts_nan), (-np.inf, True), (1.0, accepts_nan)):
        got = np.array([*first[:2], last], np.float32)
        assert (check(program, {"O": got}, answer) is None) == accepted
    got = np.array([first[0], np.nan, np.nan], np.float32)
    assert check(program, {"O": got}, answer) is not None


Array = NDArray[Any]
IN_ORDER: list[tuple[str, Callable[[Array, Array, Array], Array]]] = [
    ("X[a,d] * Y[c] * Z[a,e]", lambda x, y, z: x * y * z),
    ("X[a,d] * (Y[c] * Z[a,e])", lambda x, y, z: x * (y * z)),
    ("X[a,d] * Z[a,e] * Y[c]", lambda x, y, z: x * z * y),
    ("(X[a,d] + Y[c]) * Z[a,e]", lambda x, y, z: (x + y) * z),
]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("value", "compute"), IN_ORDER)
def test_factors_that_are_multiplied_in_the_order_of_the_program_pass_with_special_values(
    value: str, compute: Callable[[Array, Array, Array], Array], seed: int
) -> None:
    program = parse(f"O[c,d,e] += {value}", {"a": 2, "c": 17, "d": 5, "e": 17})
    shapes = {"X": (2, 1, 5, 1), "Y": (1, 17, 1, 1), "Z": (2, 1, 1, 17)}
    for case in special_cases(program, seed, choose_cases(program, seed, least=1)):
        with np.errstate(all="ignore"):
            x, y, z = (case.inputs[name].reshape(shape) for name, shape in shapes.items())
            terms = compute(x, y, z)
            assert check(program, {"O": terms[0] + terms[1]}, case.outputs) is None
