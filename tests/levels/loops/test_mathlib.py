"""The expansions, computed by NumPy: accurate, and right at the ends."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.levels.loops.lang.program import FUNCTIONS, Const
from planish.levels.loops.lower.mathlib import EXPANDED, PRIMITIVES, expansion

Array = NDArray[Any]


def _exponent(x: Array) -> Array:
    size = np.abs(x)
    whole = (np.frexp(size)[1] - 1).astype(x.dtype)
    return np.select([size == 0, ~np.isfinite(x)], [-np.inf, size], whole).astype(x.dtype)


def _mantissa(x: Array) -> Array:
    part = 2 * np.frexp(np.abs(x))[0]
    part = np.where(part >= 1.5, part / 2, part)
    return np.select([np.isnan(x) | (x < 0), (x == 0) | np.isinf(x)], [np.nan, 1], part).astype(x.dtype)


def _ldexp(x: Array, n: Array) -> Array:
    half = np.floor(n / 2)
    return x * np.exp2(half) * np.exp2(n - half)


def _scale(x: Array, n: Array) -> Array:
    return x * np.exp2(n)


def _fma(a: Array, b: Array, c: Array) -> Array:
    """Fused for float32, not for float64."""
    return (np.float64(1) * a * b + c).astype(a.dtype) if a.dtype == np.float32 else a * b + c


def _max(a: Array, b: Array) -> Array:
    return np.where(a > b, a, b)


def _choosing(test: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def choose(a: Array, b: Array, yes: Array, no: Array) -> Array:
        return np.where(test(a, b), yes, no)

    return choose


def _min(a: Array, b: Array) -> Array:
    return np.where(a < b, a, b)


NUMPY: Mapping[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative,
    "abs": np.abs, "sqrt": np.sqrt, "round": np.rint, "fma": _fma, "ldexp": _ldexp, "scale": _scale,
    "exponent": _exponent,
    "mantissa": _mantissa,
    "max": _max, "min": _min,
    "<": _choosing(np.less), "<=": _choosing(np.less_equal),
    "==": _choosing(np.equal), "!=": _choosing(np.not_equal),
}  # fmt: skip


def computed(function: str, x: Array) -> Array:
    values = [x]
    with np.errstate(all="ignore"):
        for operation in expansion(function, str(x.dtype)):
            args = [
                np.asarray(a.value, x.dtype) if isinstance(a, Const) else values[a] for a in operation.args
            ]
            values.append(np.asarray(NUMPY[operation.primitive](*args), x.dtype))
    return values[-1]


EXACT: Mapping[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "erf": np.vectorize(math.erf, otypes=[float]),
}


def test_the_primitives_are_all_that_is_used() -> None:
    assert set(NUMPY) == set(PRIMITIVES)
    assert {f for f in FUNCTIONS if f not in PRIMITIVES} == EXPANDED == set(EXACT)
    for dtype in ("float32", "float64"):
        for function in EXPANDED:
            for i, operation in enumerate(expansion(function, dtype)):
                assert len(operation.args) == PRIMITIVES[operation.primitive]
                assert all(isinstance(a, Const) or a <= i for a in operation.args)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("function", "low", "high", "limit"),
    [
        ("exp", -80, 80, 1.1), ("exp", -1, 1, 1.1), ("log", 1e-6, 3, 1.1), ("log", 1, 1e30, 1.1),
        ("tanh", -12, 12, 2.7), ("tanh", -1e-3, 1e-3, 2.7), ("sigmoid", -80, 80, 2.7), ("relu", -2, 2, 0),
        ("erf", -6.5, 6.5, 2), ("erf", -1e-3, 1e-3, 2), ("erf", 0.9, 1.1, 2),
    ],
)  # fmt: skip
def test_errors_in_units_of_the_last_place(
    function: str, low: float, high: float, limit: float, dtype: str
) -> None:
    """Measured against extended precision, where this platform has it; half a unit is its own error."""
    x = np.random.default_rng(0).uniform(low, high, 100_000).astype(dtype)
    wide = np.float64 if dtype == "float32" else np.longdouble
    exact = EXACT[function](x.astype(wide))
    unit = np.spacing(np.abs(exact.astype(dtype))).astype(wide)
    error = float(np.max(np.abs(computed(function, x).astype(wide) - exact) / unit))
    assert error <= limit + 0.5 * (np.finfo(wide).eps == np.finfo(np.float64).eps and dtype == "float64")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", sorted(EXPANDED))
def test_ends(function: str, dtype: str) -> None:
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1000, -1000, 1e-40], dtype)
    with np.errstate(all="ignore"):
        exact = EXACT[function](x)
    tiny = float(np.finfo(dtype).tiny)
    np.testing.assert_allclose(computed(function, x), exact, rtol=1e-6, atol=tiny)
