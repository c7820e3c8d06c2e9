"""Comparisons and choices: by the text and by Python, on every back end, verified where they are close."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from levels.loops.running import Array, both, everywhere, run
from planish.core.errors import ProgramError
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.ir.tree import pseudocode
from planish.levels.loops.lang.notation import Tensor, axes, where
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.cases import choose_cases
from planish.levels.loops.reference.reference import reference

CANONICAL = [
    ("O[i] = A[i] < B[i]", "O[i] = where(A[i] < B[i], 1, 0)"),
    ("O[i] = A[i] >= B[i]", "O[i] = where(B[i] <= A[i], 1, 0)"),
    ("O[i] = where(A[i] > 0, A[i], 0)", "O[i] = where(0 < A[i], A[i], 0)"),
    ("O[i] = where(A[i], B[i], -inf)", "O[i] = where(A[i] != 0, B[i], -inf)"),
    ("O[i] = where(where(A[i] == B[i], 1, 0), 2, 3)", "O[i] = where(A[i] == B[i], 2, 3)"),
    ("O[i] = 2 * (A[i] + 1 <= B[i])", "O[i] = (2 * where((A[i] + 1) <= B[i], 1, 0))"),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_a_comparison_alone_is_one_or_zero(text: str, canonical: str) -> None:
    program = parse(text, {"i": 5})
    assert str(program.statements[0]) == canonical
    assert parse_canonical(program.text) == program


def test_a_comparison_has_no_truth_in_python() -> None:
    (i,) = axes("i")
    A, B = Tensor("A"), Tensor("B")
    with pytest.raises(ProgramError, match="not true or false as a whole"):
        _ = A[i] < B[i] < 3
    with pytest.raises(ProgramError, match="not true or false as a whole"):
        where((A[i] < 1) and (B[i] < 1), 1, 0)


@everywhere
@both
def test_gelu(backend: str, dtype: str) -> None:
    x = np.linspace(-6, 6, 1003).astype(dtype)
    got = run(
        parse("O[i] = 0.5 * X[i] * (1 + erf(X[i] / sqrt(2)))", {"i": 1003}, dtype=dtype), {"X": x}, backend
    )
    expected = [0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.astype(float)]
    eps = float(np.finfo(dtype).eps)
    # 1 + erf cancels below zero: an error of erf is one of x, and not of the result.
    np.testing.assert_allclose(got, expected, rtol=8 * eps, atol=8 * eps)


@everywhere
@both
def test_causal_attention(backend: str, dtype: str) -> None:
    """Scores of later keys are masked by a comparison of positions."""
    n, d = 21, 8
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((n, d)).astype(dtype) for _ in range(3))
    position = np.arange(n).astype(dtype)
    text = """
    S[q,k] += Q[q,d] * K[k,d]
    T[q,k] = where(P[k] <= P[q], S[q,k], -inf)
    M[q] max= T[q,k]; E[q,k] = exp(T[q,k] - M[q]); Z[q] += E[q,k]
    O[q,e] += E[q,k] / Z[q] * V[k,e]
    """
    got = run(
        parse(text, {"q": n, "k": n, "d": d, "e": d}, dtype=dtype),
        {"Q": q, "K": k, "V": v, "P": position},
        backend,
    )
    s = np.where(np.tri(n, dtype=bool), q.astype(float) @ k.astype(float).T, -np.inf)
    e = np.exp(s - s.max(axis=1, keepdims=True))
    expected = e / e.sum(axis=1, keepdims=True) @ v
    np.testing.assert_allclose(got, expected, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-6)


HOLDS: Mapping[str, Callable[[Array, Array], Array]] = {
    "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal,
    ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


@everywhere
@both
@pytest.mark.parametrize("test", HOLDS)
@pytest.mark.parametrize("size", [1, 5, 16, 37])
def test_numbers_and_their_neighbors(backend: str, dtype: str, test: str, size: int) -> None:
    a = np.linspace(-1, 1, size, dtype=dtype)
    b = np.stack([a, np.nextafter(a, a.dtype.type(2)), np.nextafter(a, a.dtype.type(-2))])
    text = f"O[j,i] = where(A[i] {test} B[j,i], A[i] * 2, B[j,i] - 1)"
    got = run(parse(text, {"i": size, "j": 3}, dtype=dtype), {"A": a, "B": b}, backend)
    np.testing.assert_array_equal(got, np.where(HOLDS[test](a, b), a * a.dtype.type(2), b - b.dtype.type(1)))


def test_where_rounding_decides_either_is_right() -> None:
    """A third is another number in float32 and in float64: a kernel may find it equal or not."""
    program = parse("O[i] = where(A[i] / 3 < B[i], 1, 5)", {"i": 3})
    third = np.float32(1) / np.float32(3)
    inputs = {"A": np.ones(3, np.float32), "B": np.array([third, 0.2, 0.5], np.float32)}
    expected = reference(program, inputs).expected["O"]
    for first, right in ((1, True), (5, True), (7, False)):
        assert expected.accepts(np.array([first, 5, 1], np.float32))[0] == right
    assert expected.tolerance[1] < 1e-6
    assert expected.tolerance[2] < 1e-6


@pytest.mark.parametrize(
    "text",
    [
        "O[i] = where(A[i] < B[i], 1, 2)", "O[i] = where(A[i] <= 0, A[i], 1)", "O[i] = where(M[i], A[i], 9)",
        "O[i] = A[i] == B[i]", "T[i] = A[i] - B[i]; O[i] = where(T[i] != 0, A[i], 9)",
        "M[i] max= A[i,k]; O[i,k] = where(A[i,k] == M[i], 1, 0)",
    ],
)  # fmt: skip
def test_inputs_are_equal_now_and_then(text: str) -> None:
    """A kernel that takes < for <=, or == for !=, is found out on the sets that are chosen."""
    program = parse(text, {"i": 40, "k": 9} if "k" in text else {"i": 40})
    wrong = {"<=": "<", "<": "<=", "==": "!=", "!=": "=="}
    canonical = program.text
    test = next(t for t in ("<=", "==", "!=", "<") if f" {t} " in canonical)
    mistaken = parse_canonical(canonical.replace(f" {test} ", f" {wrong[test]} "))
    shown = [
        not np.all(case.outputs.expected["O"].accepts(reference(mistaken, case.inputs)["O"].astype("f4")))
        for case in choose_cases(program, 0)
    ]
    assert any(shown)


def test_pseudocode() -> None:
    tree = lower(unscheduled(parse("O[i] = where(A[i] < 0.5, A[i], 2)", {"i": 4})))
    assert "O[i] = where(A[i] < 0.5, A[i], 2)" in pseudocode(tree)
