"""Values with a bound of the rounding error that any correct kernel may make.

The analysis is Higham's (Accuracy and Stability of Numerical Algorithms, 2nd ed., chapters 2 and 3).
With the unit roundoff u, one operation errs by at most u|x|, and a sum of n terms by at most
nu/(1 - nu) times the sum of their magnitudes, in whatever order it is taken, fused or not.

Such bounds grow with n, and would not detect a kernel that omits one term of many. So values also have a
*quantum*: the largest power of two, of 1 and below, of which all are multiples. Where every partial sum is a
multiple of the quantum and below 2^24 quanta (2^53 in float64), the sum is exact in any order, and the bound
is zero. The inputs that planish makes for itself have such a quantum, and so are most of its kernels exact.

Infinities and NaN have no error: they are what the kernel must return. But where rounding decides if there
is one (a divisor or logarithm's argument that may be zero), nothing is known, and the error is infinite.

Zeros are exact where every kernel computes them: an exponential below the range of float64, a root of zero, a
product with zero. So it is known which side a comparison with them takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from planish.levels.loops.lang.draft import collisions, passes
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import IDENTITY, QINT8, QUINT8, TF32, TF32_BITS, Statement, TensorType
from planish.levels.loops.reference.views import Array, chunks, view

_FINEST = 30
"""Quanta below 2^-30 are not looked for: no sum of such numbers would be exact in float32."""
_INT64_QUANTA = 2.0**62
"""Numbers of fewer quanta fit into 64 bits, with their sign."""


def quantum_of(value: float) -> float:
    """Return the largest power of two that a number is a multiple of; 1 for zero and infinities."""
    if value == 0 or not np.isfinite(value):
        return 1.0
    n, d = value.as_integer_ratio()
    # The lowest bit that is set; the denominator is a power of two.
    return (n & -n) / d


def quantum_of_all(values: Array) -> float:
    """Return the quantum of an array: 1, or a smaller power of two; 0 where it would be below 2^-30.

    Args:
        values: of any type; infinities are multiples of everything, NaN of nothing.
    """
    bits = 0
    for (chunk,) in chunks(values):
        found = _bits(chunk.astype(np.float64))
        if found is None:
            return 0.0
        bits |= found
    # In two's complement the lowest bit that is set is that of the magnitude.
    return min(1.0, (bits & -bits) / 2**_FINEST) if bits else 1.0


def _bits(chunk: Array) -> int | None:
    """Collect the bits of numbers in units of the finest quantum; None where one is not a multiple of it."""
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = chunk * 2.0**_FINEST
        if not np.abs(scaled).max() < _INT64_QUANTA:
            # The low bits are what counts, and the remainder is exact. An infinity has none.
            scaled = np.where(np.isinf(scaled), 0.0, np.fmod(scaled, _INT64_QUANTA))
        quanta = scaled.astype(np.int64)
    return int(np.bitwise_or.reduce(quanta)) if np.array_equal(quanta, scaled) else None


def largest_of(values: Array) -> float:
    """Return the largest finite magnitude; 0 where there is none.

    Args:
        values: of any type.
    """
    return max([_largest(chunk) for (chunk,) in chunks(values)], default=0.0)


def _largest(chunk: Array) -> float:
    magnitudes = np.abs(chunk.astype(np.float64))
    largest = float(magnitudes.max())
    if math.isfinite(largest):
        return largest
    return float(magnitudes.max(initial=0.0, where=np.isfinite(magnitudes)))


_UNITS = {"exp": 8, "log": 8, "tanh": 16, "sigmoid": 16, "erf": 8, "sqrt": 2, "div": 2}
"""Roundings that a function may err by, where it is more than one; two are a unit in the last place."""

_STEEPEST = {"sigmoid": 0.25, "erf": 2 / math.sqrt(math.pi)}
"""The greatest slopes of functions that have another one than 1."""

_EXACT = {"max", "min", "neg", "abs", "relu"}
_EXPONENTIAL = {"exp", "sigmoid"}
_VANISHING = -747.0
"""Below it, exponentials are 0 in float64, and so in every type that a kernel may compute in."""
_MAKES_ZEROS = {"exp", "sigmoid", "sqrt", "mul", "div"}


@dataclass(frozen=True)
class Precision:
    """Precision of an element type.

    Args:
        unit: the unit roundoff; for float64, twice it, because the reference errs as the kernel does.
        max_integer: the largest number up to which all integers are representable.
        tiny: below it, results may be flushed to zero.
        huge: the largest number; beyond it, nothing is known.
        dtype: the NumPy type.
    """

    unit: float
    max_integer: float
    tiny: float
    huge: float
    dtype: np.dtype[Any]

    @staticmethod
    @cache
    def of(dtype: str) -> Precision:
        """Return that of an element type."""
        info = limits(dtype)
        reference = float(np.finfo("float64").eps) / 2
        unit = 1.01 * (float(info.eps) / 2 + reference)
        # The hidden bit counts too.
        return Precision(unit, 2.0 ** (info.nmant + 1), float(info.tiny), float(info.max), numpy_type(dtype))

    def gamma(self, n: int) -> float:
        """Bound the relative error of n roundings in a row."""
        return n * self.unit / (1 - n * self.unit) if n * self.unit < 1 else float("inf")


@dataclass(frozen=True)
class Bounded:
    """Values and how far a correct kernel's may be off.

    Args:
        value: in float64, or in a narrower type that holds the same numbers.
        error: not negative, of the value's shape; None where the values are exact; infinite where nothing
            is known.
        quantum: a power of two of which all values are multiples; 0 where none is known.
        largest: bounds the finite magnitudes.
    """

    value: Array
    error: Array | None
    quantum: float
    largest: float

    @property
    def errors(self) -> Array | float:
        """The error, or 0."""
        return 0.0 if self.error is None else self.error

    @property
    def unknown(self) -> bool:
        """Return whether nothing is known of some value."""
        return self.error is not None and bool(np.isinf(self.error).any())

    def map(self, change: Callable[[Array], Array]) -> Bounded:
        """Apply a change of shape to values and errors alike."""
        return Bounded(
            change(self.value), None if self.error is None else change(self.error), self.quantum, self.largest
        )

    @property
    def magnitude(self) -> Array:
        """Bounds of the kernel's magnitudes."""
        return np.abs(self.value) + self.errors


def limits(dtype: str) -> Any:
    """Return the limits of an element type as `numpy.finfo` has them, for types of other libraries too."""
    if dtype == TF32:
        eps = 2.0**-TF32_BITS
        return SimpleNamespace(eps=eps, nmant=TF32_BITS, tiny=2.0**-126, max=(2 - eps) * 2.0**127)
    if dtype in (QINT8, QUINT8):
        bits = 7 if dtype == QUINT8 else 6
        return SimpleNamespace(eps=2.0**-bits, nmant=bits, tiny=1.0, max=2.0 ** (bits + 1) - 1)
    if dtype != "bfloat16":
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(numpy_type(dtype))


def bounded(value: Array, error: Array | None, quantum: float) -> Bounded:
    """Return bounded values; their largest magnitude is computed."""
    return Bounded(value, error, quantum, largest_of(value))


def exactly(array: Array) -> Bounded:
    """Return inputs as exact values with their quantum: 1, or a smaller power of two; 0 below 2^-30."""
    return bounded(array, None, quantum_of_all(array))


def constant(value: float, rank: int, precision: Precision) -> Bounded:
    """Return a number as the kernel has it: rounded to its element type."""
    rounded = float(precision.dtype.type(value))
    return bounded(np.full((1,) * rank, rounded), None, quantum_of(rounded))


def representable(largest: float, quantum: float, precision: Precision) -> bool:
    """Return whether all multiples of the quantum up to the largest magnitude are elements of the type."""
    # Such a multiple is an integer in units of the quantum, which the fraction has room for.
    return quantum >= precision.tiny and largest <= quantum * precision.max_integer


def random_sum_error(n: int, most: float, precision: Precision) -> float:
    """Bound the error of n additions whose partial sums have random signs, and magnitudes of `most` at most.

    Then the roundings have random signs too, and their sum grows with the root of n (Higham and Mary, A New
    Approach to Probabilistic Rounding Error Analysis, 2019): by more than 8 standard deviations hardly ever.
    """
    return 8 * math.sqrt(n) * precision.unit * most


def apply(function: str, args: Sequence[Bounded], precision: Precision) -> Bounded:
    """Apply an element-wise function to values with errors."""
    value = VALUES[function](*(a.value for a in args))
    if function in TESTS:
        return _chosen(function, value, args)
    result = bounded(value, None, _quantum(function, args))
    exact = function in _EXACT or representable(result.largest, result.quantum, precision)
    if exact and all(a.error is None for a in args):
        return result
    error = np.zeros(value.shape)
    if any(a.error is not None for a in args):
        error = error + _propagated(function, value, args)
    if not exact:
        finite = np.where(np.isfinite(value), np.abs(value), 0.0)
        # Relative to the kernel's own result, which may be off already; and `tiny` for what is flushed to
        # zero.
        error = error + _UNITS.get(function, 1) * precision.unit * (finite + error) + precision.tiny
    # On its way there the kernel may have overflowed.
    if result.largest > precision.huge:
        error = np.where(np.isfinite(value) & (np.abs(value) > precision.huge), np.inf, error)
    unknown = np.isinf(error)
    for a in args:
        unknown = unknown | np.isinf(a.errors)
    sure = _sure_zeros(function, value, args)
    return replace(result, error=np.where(sure, 0.0, with_special(value, error, unknown)))


def _sure_zeros(function: str, value: Array, args: Sequence[Bounded]) -> Array | Literal[False]:
    """Find the zeros that are exact: made of exact zeros or infinities, or exponentials out of range."""
    if function not in _MAKES_ZEROS or not np.any(zeros := value == 0):
        return False
    x, y = args[0], args[-1]
    if function in _EXPONENTIAL:
        return x.value + x.errors < _VANISHING
    zeros &= (x.value == 0) & (x.errors == 0) | (function == "mul") & (y.value == 0) & (y.errors == 0)
    # What the zero meets is finite, and a divisor is not zero; a finite number over an infinity is one.
    if function == "div":
        over_infinity = np.isinf(y.value) & (y.errors == 0) & np.isfinite(x.value) & np.isfinite(x.errors)
        return zeros & (np.abs(y.value) > y.errors) | over_infinity
    return zeros & np.isfinite(x.errors) & np.isfinite(y.errors)


def _chosen(test: str, value: Array, args: Sequence[Bounded]) -> Bounded:
    """Bound a choice: either value is right where errors decide which side of the comparison is greater."""
    a, b, x, y = args
    result = bounded(value, None, min(x.quantum, y.quantum))
    if all(arg.error is None for arg in args):
        return result
    margin = a.errors + b.errors
    known = np.isnan(a.value) & (a.errors == 0) | np.isnan(b.value) & (b.errors == 0)
    # Not "at most": a difference that is NaN is unsure too.
    unsure = (margin > 0) & ~(np.abs(a.value - b.value) > margin) & ~known
    own = np.where(TESTS[test](a.value, b.value), x.errors, y.errors)
    apart = np.abs(x.value - y.value) + np.maximum(x.errors, y.errors)
    error = np.where(unsure, np.where(np.isnan(apart), np.inf, apart), own)
    return replace(result, error=np.broadcast_to(error, value.shape))


def with_special(value: Array, error: Array, unknown: Array | bool) -> Array:
    """Set the error of infinities and NaN: none, or an infinite one where nothing is known."""
    lost = np.isnan(error) | ~np.isfinite(value)
    return np.where(lost, np.where(unknown, np.inf, np.where(np.isfinite(value), np.inf, 0.0)), error)


def _quantum(function: str, args: Sequence[Bounded]) -> float:
    # Multiples of two powers of 2 are multiples of the lesser one, and so are their sums.
    if function in ("add", "sub", "max", "min", "neg", "abs", "relu"):
        return min(a.quantum for a in args)
    return args[0].quantum * args[1].quantum if function == "mul" else 0.0


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def _erf(x: Array) -> Array:
    """The C library's, one by one: NumPy has none."""
    flat = np.asarray(x, np.float64).reshape(-1).tolist()
    return np.fromiter(map(math.erf, flat), np.float64, len(flat)).reshape(np.shape(x))


def _choosing(test: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def choose(a: Array, b: Array, x: Array, y: Array) -> Array:
        return np.where(test(a, b), x, y)

    return choose


TESTS: dict[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
"""Comparison to what tests arrays."""

VALUES: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "relu": _relu,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "erf": _erf,
    **{name: _choosing(test) for name, test in TESTS.items()},
}
"""Element-wise function to what computes it on arrays."""
UFUNC: Mapping[str, Any] = {name: made for name, made in VALUES.items() if isinstance(made, np.ufunc)}
"""Function or reduction to what computes it; the others are made of these."""


def _propagated(function: str, value: Array, args: Sequence[Bounded]) -> Array | float:
    """Bound how far a function's result moves when its arguments move by their errors."""
    if len(args) == 2:
        return _propagated_of_two(function, value, args[0], args[1])
    x, e = args[0].value, args[0].errors
    match function:
        case "sqrt":
            # Concave: the lower end is farther off, where there is an upper one.
            return np.where(np.isinf(e), np.inf, value - np.sqrt(np.maximum(x - e, 0.0)))
        case "exp":
            return np.where(np.isinf(value), 0.0, value * np.expm1(e))
        case "log":  # convex: the upper end is
            return np.where(x > e, -np.log1p(-e / x), np.where(x < -e, 0.0, np.inf))
        case _:
            return e * _STEEPEST.get(function, 1.0)


def _propagated_of_two(function: str, value: Array, a: Bounded, b: Bounded) -> Array | float:
    x, e, y, f = np.abs(a.value), a.errors, np.abs(b.value), b.errors
    match function:
        case "add" | "sub":
            return e + f
        case "mul":
            return x * f + y * e + e * f
        case "div":
            surely_infinite = (y == 0) & (f == 0) & (x > e)
            apart = np.where(surely_infinite, 0.0, np.inf)
            # |x'/y' - x/y| <= (e + |x/y| f) / (|y| - f), as long as the divisor cannot be 0.
            return np.where(y > f, (e + np.abs(value) * f) / (y - f), apart)
        case _:
            return np.maximum(e, f)  # neither moves farther than its arguments


def target_views(
    statement: Statement, out: Array, part: Array, size: Mapping[str, int]
) -> Iterator[tuple[Array, Array]]:
    """List views of a target and what goes there; no view has an element twice.

    Args:
        statement: what is written.
        out: its target.
        part: a dimension for each of the target's axes.
        size: axis to extent.
    """
    axes = statement.output_axes
    for index, fixed in passes(statement.target, size):
        left = [axis for axis in axes if axis not in fixed]
        there = tuple(fixed.get(axis, slice(None)) for axis in axes)
        yield view(out, index, left, size), part[there]


def filled_with(reduce: str | None) -> float:
    """Return the value of a spread target where nothing reaches it."""
    return IDENTITY[reduce or "add"]


def combined(statement: Statement, out: Array, part: Array, size: Mapping[str, int]) -> Array:
    """Put a statement's results into a target that is filled already; return the target."""
    for target, values in target_views(statement, out, part, size):
        ufunc = UFUNC.get(statement.reduce or "")
        target[...] = ufunc(target, values) if ufunc else values
    return out


def scatter_store(
    statement: Statement, part: Bounded, kind: TensorType, size: Mapping[str, int], precision: Precision
) -> Bounded:
    """Store a statement's results in the tensor.

    Args:
        statement: what is written.
        part: its result for each point of its target's axes, each with the error of a reduction of as many
            terms as go into an element at most.
        kind: of the target.
        size: axis to extent.
        precision: of the kernel.
    """

    def into(start: float, values: Array) -> Array:
        return combined(statement, np.full(kind.shape, start), values, size)

    value = into(filled_with(statement.reduce), part.value)
    largest = max(largest_of(value), part.largest)
    quantum = part.quantum if statement.reduce != "mul" else 0.0
    if part.error is None and statement.reduce != "mul":
        return Bounded(value, None, quantum, largest)
    errors = np.broadcast_to(part.errors, part.value.shape)
    if statement.reduce == "mul":
        # The largest that the product can be, less the product itself.
        most = into(1.0, part.magnitude) * (1 + precision.gamma(collisions(statement.target, size)))
        error = most - np.abs(value) + precision.tiny
    elif statement.reduce == "add":
        error = into(0.0, errors)
    else:
        error = combined(replace(statement, reduce="max"), np.zeros(kind.shape), errors, size)
    huge = np.isfinite(value) & (np.abs(value) > precision.huge)
    error = np.where(huge, np.inf, error)
    return Bounded(value, with_special(value, error, part.unknown), quantum, largest)
