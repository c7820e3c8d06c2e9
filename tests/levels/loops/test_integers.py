"""Programs of integers: int8 is read, int32 is computed and written, exactly and modulo 2^32."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from amounts import examples
from levels.loops.random_schedules import schedules
from levels.loops.running import BUILDERS, outputs_of, wrong, wrong_in_tree
from planish.core import Candidate, ProgramError
from planish.levels.loops.backends import available_backends, supported_isas, tree_of
from planish.levels.loops.codegen.x86.compile import compile_tree
from planish.levels.loops.codegen.x86.isa import IsaName
from planish.levels.loops.evaluator import Called, Verifier
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.cases import choose_cases
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import NEAR_ONE, POSITIVE, Style, aligned, make_inputs
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.steps import Reorder
from planish.levels.loops.testing.interpreter import UNWRITTEN, interpret

Array = NDArray[Any]
GEMM = "C[m,n] += A[m,k] * B[k,n]"
SIZES = {"m": 5, "n": 37, "k": 9}
BACKENDS = available_backends()
INT32 = np.iinfo(np.int32)


def test_inputs_are_small_and_the_rest_is_not() -> None:
    made = parse(f"{GEMM}; D[m,n] = relu(C[m,n])", SIZES, dtype="int8")
    types = {"A": "int8", "B": "int8", "C": "int32", "D": "int32"}
    assert {name: kind.dtype for name, kind in made.types} == types
    assert parse_canonical(made.text) == made
    assert parse(f"{GEMM}; D[m,n] = relu(C[m,n])", SIZES, dtype="A=int8,B=int8") == made


@pytest.mark.parametrize(
    ("text", "dtype", "message"),
    [
        (
            "C[m] = A[m] / B[m]",
            "int8",
            "integers have no 'div'. They have abs, add, max, min, mul, neg, relu",
        ),
        ("C[m] = exp(A[m])", "int32", "integers have no 'exp'"),
        (
            "C[m] = 1.5 * A[m]",
            "int8",
            "1.5 is not a value of int32. Its values are integers from -2147483648 to",
        ),
        ("C[m] = A[m] + 3000000000", "int8", "3e+09 is not a value of int32"),
        ("C[m] = pad(A[m-1], inf)", "int8", "inf is not a value of int8"),
        (
            "C[m] = pad(A[m-1], 128)",
            "int8",
            "128 is not a value of int8. Its values are integers from -128 to 127",
        ),
        (
            "C[m] = A[m]",
            "C=int8",
            "C is written, so it cannot be int8: integers are not rounded to fewer",
        ),
        ("C[m] = A[m]", "A=int8,C=float32", "the tensors have types float32, int8"),
    ],
)
def test_errors(text: str, dtype: str, message: str) -> None:
    with pytest.raises(ProgramError) as raised:
        parse(text, {"m": 4}, dtype=dtype)
    assert message in str(raised.value)


@pytest.mark.parametrize("name", BUILDERS)
def test_a_product_is_that_of_numpy(name: str) -> None:
    made = parse(GEMM, {"m": 13, "n": 70, "k": 290}, dtype="int8")
    random = np.random.default_rng(0)
    inputs = {n: random.integers(-128, 128, made.type[n].shape, np.int8) for n in "AB"}
    inputs["A"][0], inputs["B"][:, 0] = -128, -128
    expected = inputs["A"].astype(np.int32) @ inputs["B"].astype(np.int32)
    np.testing.assert_array_equal(outputs_of(unscheduled(made), BUILDERS[name], inputs)["C"], expected)
    assert check(made, {"C": expected}, reference(made, inputs)) is None


COMPARED: list[tuple[str, Callable[[Array, Array], Array]]] = [
    ("O[i] = argmax(X[i,k])", lambda x, _: x.argmax(1)),
    ("O[i] = argmin(X[i,k] - Y[k])", lambda x, y: (x - y).argmin(1)),
    ("O[i,k] = where(X[i,k] < Y[k], X[i,k], -inf)", lambda x, y: np.where(x < y, x, INT32.min)),
    ("O[i,k] = where(X[i,k] <= Y[k], k, inf)", lambda x, y: np.where(x <= y, np.arange(37), INT32.max)),
    ("O[i,k] = (X[i,k] == Y[k]) * 7", lambda x, y: (x == y) * 7),
    ("O[i] += X[i,k] != Y[k]", lambda x, y: (x != y).sum(1)),
]


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("dtype", ["int8", "int32"])
@pytest.mark.parametrize(("text", "expected"), COMPARED)
def test_comparisons(name: str, dtype: str, text: str, expected: Callable[[Array, Array], Array]) -> None:
    """Infinities are the least number and the greatest; equal numbers and both ends are among the inputs."""
    made = parse(text, {"i": 7, "k": 37}, dtype=dtype)
    assert parse_canonical(made.text) == made
    ends = np.iinfo(dtype)
    drawn = np.random.default_rng(0).integers(-2, 3, (8, 37)).astype(dtype)
    drawn[0, :2], drawn[1, :2], drawn[7, 1] = ends.min, ends.max, ends.min
    x, y = drawn[:7], drawn[7]
    inputs = {n: a for n, a in (("X", x), ("Y", y)) if n in made.inputs}
    wanted = expected(x.astype(np.int32), y.astype(np.int32)).astype(np.int32)
    np.testing.assert_array_equal(outputs_of(unscheduled(made), BUILDERS[name], inputs)["O"], wanted)
    np.testing.assert_array_equal(reference(made, inputs)["O"], wanted)
    output = {"O": aligned(made.type["O"])}
    numpy_callable(made, {**inputs, **output})()
    np.testing.assert_array_equal(output["O"], wanted)


def test_inputs_meet_the_numbers_that_they_are_compared_with() -> None:
    made = parse("O[i] = where(X[i] == 3, 1, Y[i])", {"i": 200}, dtype="int8")
    assert any((case.inputs["X"] == 3).any() for case in choose_cases(made, 0))


def test_what_nothing_writes_shows() -> None:
    made = parse("O[i] = X[i] - X[i]", {"i": 9}, dtype="int8")
    empty = replace(lower(unscheduled(made)), body=())
    assert set(interpret(empty, make_inputs(made))["O"].tolist()) == {UNWRITTEN}


@pytest.mark.parametrize("name", BUILDERS)
def test_what_is_too_large_wraps_as_in_numpy(name: str) -> None:
    text = "C[i] = A[i] * B[i] - 7 * A[i]; D[i] = abs(-A[i]); P[] *= A[i]; S[] += A[i] * A[i]; L[] min= -A[i]"
    made = parse(text, {"i": 77}, dtype="int32")
    random = np.random.default_rng(0)
    a, b = (random.integers(INT32.min, INT32.max, 77, np.int32) | 1 for _ in "AB")
    a[3] = INT32.min
    got = outputs_of(unscheduled(made), BUILDERS[name], {"A": a, "B": b})
    expected = {
        "C": a * b - np.int32(7) * a,
        "D": np.abs(-a),
        "P": np.multiply.reduce(a, dtype=np.int32),
        "S": np.add.reduce(a * a, dtype=np.int32),
        "L": np.min(-a),
    }
    for output, values in expected.items():
        np.testing.assert_array_equal(got[output], values, err_msg=output)
    assert (
        check(made, {n: np.asarray(v) for n, v in expected.items()}, reference(made, {"A": a, "B": b}))
        is None
    )


@pytest.mark.parametrize("text", ["C[i,j] = A[i,j]", "C[j,i] = A[i,j]", "C[i] = A[2*i]", "C[i,j] = A[i]"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_all_small_numbers_are_read_as_they_are(backend: str, text: str) -> None:
    made = parse(text, {"i": 131, "j": 37} if "j" in text else {"i": 131}, dtype="int8")
    a = np.resize(np.arange(256, dtype=np.uint8), made.type["A"].shape).view(np.int8)
    got = outputs_of(unscheduled(made), BUILDERS[backend], {"A": a})["C"]
    expected = {"C[j,i] = A[i,j]": a.T, "C[i] = A[2*i]": a[::2]}.get(text, a)
    np.testing.assert_array_equal(
        got, np.broadcast_to(expected[:, None], got.shape) if "A[i]" in text else expected
    )


@pytest.mark.parametrize(
    "text", ["C[i,j] = A[i] * B[j]", "C[i,j] += A[i,k] * B[k,j]", "C[i,j] += A[i,k] * B[j,k]"]
)
@pytest.mark.parametrize("name", BUILDERS)
def test_all_products_of_small_numbers(name: str, text: str) -> None:
    made = parse(text, {"i": 256, "j": 256, "k": 2} if "k" in text else {"i": 256, "j": 256}, dtype="int8")
    every = np.arange(-128, 128).astype(np.int8)
    pair = np.stack([every, every[::-1]])
    inputs = {"A": every, "B": every}
    if "k" in text:
        inputs = {
            "A": np.ascontiguousarray(pair.T),
            "B": pair if "B[k,j]" in text else np.ascontiguousarray(pair.T),
        }
    expected = np.multiply.outer(every, every, dtype=np.int32)
    expected = expected + expected[::-1, ::-1] if "k" in text else expected
    np.testing.assert_array_equal(outputs_of(unscheduled(made), BUILDERS[name], inputs)["C"], expected)


@pytest.mark.parametrize("isa", supported_isas())
def test_the_processor_multiplies_and_adds_at_once_where_it_can(isa: IsaName) -> None:
    """AVX512_VNNI, and AVX-VNNI for vectors of 256 bits; else 16 bits are multiplied, and then added."""
    order = Candidate((Reorder(("m", "k", "n")),))
    tree = tree_of(parse(GEMM, {"m": 4, "n": 32, "k": 9}, dtype="int8"), order)
    flag = {"avx512": "avx512_vnni", "avx2": "avx_vnni"}[isa]
    assert "vpdpwssd" in compile_tree(tree, isa, frozenset({flag})).assembly("f")
    other = compile_tree(tree, isa, frozenset()).assembly("f")
    assert "vpdpwssd" not in other
    assert "vpmaddwd" in other
    assert "vpmulld" not in other


TEXTS = (
    GEMM,
    "C[m,n] += A[k,m] * B[n,k]; D[m,n] = relu(C[m,n] - b[n]) * 3",
    "C[m,n] = max(abs(A[m,n]) * 3 - b[n], -7)",
    "O[m,n] += pad(I[k,m+r-1], 5) * W[n,k,r]",
    "C[n,m] = A[m,n]; S[m] max= A[m,n]",
    "S[m] += A[m,k] * B[k] - A[m,k]; T[] min= S[m]",
    "O[m,n+k] = A[m,n] | -B[m,k]",
    "C[m,n] = A[m,n] * n - m",
    "S[m] *= A[m,k]; T[m] = min(S[m], -S[m])",
)


@settings(max_examples=examples(120))
@given(st.data())
def test_any_schedule_of_any_program_is_right(data: st.DataObject) -> None:
    text, dtype = data.draw(st.sampled_from(TEXTS)), data.draw(st.sampled_from(["int8", "int32", "A=int8"]))
    axes = [axis for axis in "mnkr" if axis in text.replace("relu", "").replace("min", "")]
    sizes = {axis: data.draw(st.sampled_from([1, 2, 3, 7, 8, 16, 17, 33])) for axis in axes}
    sizes |= {"r": 3} if "r" in axes else {}
    made = parse(text, sizes, dtype=dtype if "A" in text else "int8")
    schedule = data.draw(schedules(made.with_constants(made.inputs)))
    name = data.draw(st.sampled_from(list(BUILDERS)))
    found = wrong(schedule, BUILDERS[name])
    assert found is None, f"{found}\n{made.text}\n{schedule.text}\n{name}"


@pytest.mark.parametrize("text", TEXTS)
def test_numpy_and_the_interpreter_agree_with_the_reference(text: str) -> None:
    axes = [axis for axis in "mnkr" if axis in text.replace("relu", "").replace("min", "")]
    made = parse(
        text, {axis: n for axis, n in zip("mnkr", (4, 5, 6, 3), strict=True) if axis in axes}, dtype="int8"
    )
    verifier = Verifier(made, choose_cases(made, 1))
    assert (
        verifier.wrong(Called(lambda: numpy_callable(made, {**verifier.inputs, **verifier.outputs}))) is None
    )
    assert wrong_in_tree(lower(unscheduled(made)), made) is None


def test_a_result_that_is_off_by_one_fails() -> None:
    made = parse(GEMM, SIZES, dtype="int8")
    inputs = make_inputs(made)
    answer = reference(made, inputs)
    got = answer["C"].astype(np.int32)
    assert check(made, {"C": got}, answer) is None
    got[2, 3] += 1
    assert (check(made, {"C": got}, answer) or "").startswith("C[2, 3] is ")


@pytest.mark.parametrize("style", [POSITIVE, NEAR_ONE, POSITIVE.scaled(4), POSITIVE.scaled(1 / 16)])
def test_inputs_fit_their_type_and_none_is_zero(style: Style) -> None:
    made = parse(GEMM, {"m": 40, "n": 40, "k": 40}, dtype="A=int8")
    for name, array in make_inputs(made, 3, dict.fromkeys(made.inputs, style)).items():
        assert array.dtype == made.type[name].dtype
        sizes = np.abs(array.astype(np.int64))
        assert 0 < sizes.min() < sizes.max() <= (127 if name == "A" else 512)
