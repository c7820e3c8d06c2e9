"""The reference against single points, and its tolerance against right and wrong kernels."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from loops import brute
from planish.loops.parse import parse
from planish.loops.program import Program
from planish.loops.reference import check, make_inputs, reference
from planish.loops.workloads import RESNET18, matmul, workload
from planish.testing.programs import programs

BLOCKS = [7, 100, 1 << 20]


def real_inputs(program: Program, seed: int) -> dict[str, NDArray[Any]]:
    """Inputs of no grain, so that sums are not exact."""
    rng = np.random.default_rng(seed)
    near = rng.uniform(0.9, 1.1)
    return {name: (array * near).astype(array.dtype) for name, array in make_inputs(program, seed).items()}


@settings(max_examples=150)
@given(programs(points=400), st.integers(0, 9), st.sampled_from(BLOCKS))
def test_reference_is_what_the_points_give(program: Program, seed: int, block: int) -> None:
    inputs = make_inputs(program, seed)
    answer = reference(program, inputs, block)
    for name, expected in brute.run(program, inputs).items():
        np.testing.assert_allclose(answer[name], expected, rtol=1e-9, atol=1e-9)
        assert answer[name].shape == program.type[name].shape


@settings(max_examples=100)
@given(programs(points=250), st.integers(0, 9), st.booleans(), st.sampled_from(BLOCKS))
def test_any_order_of_a_reduction_passes(program: Program, seed: int, real: bool, block: int) -> None:
    inputs = real_inputs(program, seed) if real else make_inputs(program, seed)
    number = np.dtype(program.types[0][1].dtype).type
    with np.errstate(under="ignore"):
        got = brute.run(program, inputs, number, np.random.default_rng(seed))
    assert check(program, got, reference(program, inputs, block)) is None


@settings(max_examples=60)
@given(programs(points=300), st.integers(0, 9), st.data())
def test_an_element_that_is_off_fails(program: Program, seed: int, data: st.DataObject) -> None:
    inputs = make_inputs(program, seed)
    answer = reference(program, inputs)
    name = program.outputs[0]
    got = {n: np.array(v, program.type[n].dtype) for n, v in answer.items()}
    place = data.draw(st.tuples(*(st.integers(0, n - 1) for n in got[name].shape)))
    assume(np.isfinite(got[name][place]))
    got[name][place] += 0.01 * max(1.0, abs(got[name][place]))
    message = check(program, got, answer)
    assert message is not None
    assert message.startswith(f"{name}[{', '.join(map(str, place))}] is ")
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


def test_overflow_and_undefined_values_are_accepted() -> None:
    program = parse("O[i] = exp(A[i] * 1000); P[i] = log(B[i])", {"i": 3})
    inputs = {"A": np.array([1, -1, 0], np.float32), "B": np.array([-1, 0, 1], np.float32)}
    answer = reference(program, inputs)
    inf, nan = np.inf, np.nan
    for undefined in (nan, 5.0):
        got = {"O": np.array([inf, 0, 1], np.float32), "P": np.array([undefined, -inf, 0], np.float32)}
        assert check(program, got, answer) is None
    assert check(program, {**got, "O": np.array([1, 0, 1], np.float32)}, answer)


def test_the_bound_follows_intermediate_tensors() -> None:
    program = parse("T[m] += A[m,k]; O[m] = exp(T[m]) / (1 + T[m] * T[m])", {"m": 4, "k": 50})
    expected = reference(program, real_inputs(program, 0)).expected["O"]
    assert 0 < expected.tolerance.max() < 0.01 * abs(expected.value).max()


@given(programs(points=300), st.integers(0, 9))
def test_inputs_are_aligned_and_repeat(program: Program, seed: int) -> None:
    inputs, again = make_inputs(program, seed), make_inputs(program, seed)
    assert list(inputs) == list(program.inputs)
    for name, array in inputs.items():
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert (array.shape, array.dtype) == (program.type[name].shape, program.type[name].dtype)
        assert np.array_equal(array, again[name])
        assert np.abs(array).max() <= 1.5


def test_inputs_of_roots_and_divisors_are_positive() -> None:
    program = parse("T[i] = A[i] + B[i]; O[i] = log(T[i]) + C[i] / D[i]", {"i": 500})
    inputs = make_inputs(program)
    assert {name for name, array in inputs.items() if array.min() >= 0.5} == {"A", "B", "D"}
