"""The notation in Python gives the programs that the text gives."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from planish.levels.loops.lang.notation import (
    Axis,
    Tensor,
    axes,
    equal,
    erf,
    exp,
    log,
    maximum,
    minimum,
    not_equal,
    pad,
    program,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
    relu,
    sigmoid,
    sqrt,
    tanh,
    where,
)
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program

m, n, k = Axis("m", 3), Axis("n", 4), Axis("k", 5)
A, B, b = Tensor("A"), Tensor("B"), Tensor("b")


def matmul() -> Program:
    C = Tensor("C")
    C[m, n] += A[m, k] * B[k, n]
    return program(C)


def epilogue() -> Program:
    C, D = Tensor("C"), Tensor("D")
    C[m, n] += A[m, k] * B[k, n]
    D[m, n] = relu(0.5 * C[m, n] + b[n] - 1) / (2 + abs(-C[m, n]))
    return program(D)


def convolution() -> Program:
    (c, o), y, x, r, s = axes("c o"), Axis("y", 8), Axis("x", 9), Axis("r", 3), Axis("s", 3)
    I, W, O = Tensor("I"), Tensor("W", shape=(2, 3, 3, 3)), Tensor("O")  # noqa: E741
    O[o, y, x] += pad(I[c, 2 * y + r - 1, s + x * 2 - 1], 0) * W[o, c, r, s]
    return program(O)


def reductions() -> Program:
    P, Q, R, S, T = (Tensor(name) for name in "PQRST")
    P[m] = reduce_max(A[m, k])
    Q[m] = reduce_min(A[m, k]) + P[m]
    R[m] *= A[m, k]
    S[()] = reduce_sum(Q[m] * R[m])
    T[n] = reduce_prod(B[k, n]) - S[()]
    return program(T)


def functions() -> Program:
    O = Tensor("O")  # noqa: E741
    O[m] = maximum(exp(A[m]), 3) + minimum(1, log(A[m])) - sqrt(A[m]) * tanh(A[m]) / sigmoid(1 / A[m])
    return program(O, dtype="float64")


def gelu() -> Program:
    O = Tensor("O")  # noqa: E741
    O[m] = 0.5 * A[m] * (1 + erf(A[m] / 1.4142135623730951))
    return program(O)


def choices() -> Program:
    O = Tensor("O")  # noqa: E741
    O[m] = where(A[m] < 2, A[m] >= b[m], where(equal(A[m], 1), 3, not_equal(b[m], 0)))
    return program(O, sizes={"m": 3})


def concatenation() -> Program:
    O = Tensor("O", "float64")  # noqa: E741
    O[n, m + k] = 1.0 | B[k, n]
    return program(O)


def joined_reduction() -> Program:
    i, j = Axis("i", 2), Axis("j", 3)
    O = Tensor("O")  # noqa: E741
    O[m, i + j + n] += A[m, k] * B[k, i] | 4 - b[j] | 1.0
    return program(O)


def offsets() -> Program:
    O = Tensor("O")  # noqa: E741
    O[m] = A[m, 0] + B[1 + m, 7 - (5 - m)]
    O[n + 3] = 2.5
    return program(O)


def shared() -> Program:
    """What is written first comes first, whatever is asked for first."""
    C, D, E = Tensor("C"), Tensor("D"), Tensor("E")
    C[m, n] = A[m] + 1
    D[m] += C[m, n]
    E[n] += C[m, n] * D[m]
    return program(E, D)


CASES: list[tuple[Callable[[], Program], str, str]] = [
    (matmul, "C[m,n] += A[m,k] * B[k,n]", "float32"),
    (
        epilogue,
        "C[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(0.5 * C[m,n] + b[n] - 1) / (2 + abs(-C[m,n]))",
        "float32",
    ),
    (convolution, "O[o,y,x] += pad(I[c,2*y+r-1,2*x+s-1],0) * W[o,c,r,s]", "float32"),
    (
        reductions,
        """P[m] max= A[m,k]; Q[m] = min(A[m,k]) + P[m]; R[m] *= A[m,k]
        S[] += Q[m] * R[m]; T[n] = prod(B[k,n]) - S[]""",
        "float32",
    ),
    (
        functions,
        "O[m] = max(exp(A[m]), 3) + min(1, log(A[m])) - sqrt(A[m]) * tanh(A[m]) / sigmoid(1 / A[m])",
        "float64",
    ),
    (gelu, "O[m] = 0.5 * A[m] * (1 + erf(A[m] / 1.4142135623730951))", "float32"),
    (choices, "O[m] = where(A[m] < 2, A[m] >= b[m], where(A[m] == 1, 3, b[m] != 0))", "float32"),
    (concatenation, "O[n,m+k] = 1 | B[k,n]", "float64"),
    (joined_reduction, "O[m,i+j+n] += A[m,k] * B[k,i] | 4 - b[j] | 1", "float32"),
    (offsets, "O[m] = A[m,0] + B[m+1,m+2]; O[n+3] = 2.5", "float32"),
    (shared, "C[m,n] = A[m] + 1; D[m] += C[m,n]; E[n] += C[m,n] * D[m]", "float32"),
]
SIZES = {"m": 3, "n": 4, "k": 5, "y": 8, "x": 9, "r": 3, "s": 3, "c": 3, "o": 2, "i": 2, "j": 3}


@pytest.mark.parametrize(("make", "text", "dtype"), CASES)
def test_it_equals_the_text(make: Callable[[], Program], text: str, dtype: str) -> None:
    made = make()
    assert made == parse(text, {axis: n for axis, n in SIZES.items() if axis in made.size}, dtype=dtype)


def test_sizes_are_given_by_axes_shapes_or_names() -> None:
    i, j, l = axes("i j l")  # noqa: E741
    X, Y, Z = Tensor("X", shape=(2, 3)), Tensor("Y"), Tensor("Z")
    Z[i, j] += X[i, l] * Y[l, j]
    made = program(Z, sizes={"j": 4})
    assert made == parse("Z[i,j] += X[i,l] * Y[l,j]", {"i": 2, "j": 4, "l": 3})


def test_a_tensor_is_no_sequence() -> None:
    with pytest.raises(TypeError):
        iter(cast("Any", A))
