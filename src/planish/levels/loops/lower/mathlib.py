"""Element-wise functions as straight-line arithmetic, so that a generator needs no library for vectors.

The primitives below are all that a generator must know. Constants are written for both element types;
errors, measured on 10^6 points each: under 1.1 units in the last place for exp and log, under 1.4 for erf,
under 2.7 for tanh and sigmoid, for both types, whether fma is fused or not. Where a function's result is
below the smallest normal number, it may be off by more.

The error function is an odd polynomial near zero, and 1 less its complement further out. The complement falls
so fast that its logarithm needs few digits: an error of it counts as many times less as erfc(a) is less than
erf(a), and so the fits are weighted (Remez).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from planish.levels.loops.lang.program import COMPARISONS, Const

# Fits


@dataclass(frozen=True)
class Fits:
    """Constants of an element type.

    Args:
        exp_range: arguments of exp outside give 0 or inf anyway.
        normal_range: for arguments from here on, exp's power of 2 is a normal number, up to infinity.
        tanh_range: tanh is +-1 outside.
        ln2: a part with enough trailing zeros that its products with exponents are exact, and the rest;
            the rest is positive, so that log(0) adds two equal infinities.
        exp: coefficients of (e^r - 1 - r) / r^2 for abs(r) <= ln(2) / 2 (Remez).
        log: float32: of (log(1 + f) - f + f^2 / 2) / f^3 for f in [-0.25, 0.5]; float64: of
            (log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2, for s^2 <= 0.04 (Remez).
        erf_range: from this magnitude on, erf is +-1.
        erf_near: coefficients of erf(x) / x - 1 in x^2, for abs(x) <= 1.
        erf_far: coefficients of log(1 - erf(a)) in a, for 1 <= a <= `erf_range`.
    """

    exp_range: tuple[float, float]
    normal_range: tuple[float, float]
    tanh_range: float
    ln2: tuple[float, float]
    exp: tuple[float, ...]
    log: tuple[float, ...]
    erf_range: float
    erf_near: tuple[float, ...]
    erf_far: tuple[float, ...]


FITS: Mapping[str, Fits] = {
    "float32": Fits(
        exp_range=(-104.0, 89.0),
        normal_range=(-87.0, 88.8),
        tanh_range=10.0,
        ln2=(0.693115234375, 3.1946184945309416e-05),
        exp=(
            0.50000000956816301951,
            0.16666518605782936924,
            0.041666204184978397015,
            0.0083689176695531369501,
            0.0013950595093887640462,
        ),
        log=(
            0.33333337074801773783,
            -0.25000166346898347164,
            0.1999984587229071858,
            -0.16655549697998490266,
            0.14270458765705647537,
            -0.12714882778058794179,
            0.11736717766776597849,
            -0.092538522084051186653,
            0.038812413759453782402,
        ),
        erf_range=4.0,
        erf_near=(
            0.12837916572955936822,
            -0.37612625837465104191,
            0.11283585248605634751,
            -0.026853814582072517433,
            0.0051883304825924878339,
            -0.00080102026992725067869,
            0.000078538498284294088513,
        ),
        erf_far=(
            -0.00034152518774986536741,
            -1.127089180044589883,
            -0.6381448520500815344,
            -0.10310673545922835781,
            0.021838053572880981186,
            -0.0029476553316781495854,
            0.00018637884671505197666,
        ),
    ),
    "float64": Fits(
        exp_range=(-746.0, 710.0),
        normal_range=(-708.0, 709.8),
        tanh_range=20.0,
        ln2=(0.6931471803691238, 1.9082149292705877e-10),
        exp=(
            0.50000000000000127914,
            0.16666666666666699211,
            0.041666666666514940621,
            0.0083333333333070996379,
            0.0013888888947154147329,
            0.00019841269917632446619,
            0.000024801489787382050743,
            2.7557216067358703421e-6,
            2.7631339308513520618e-7,
            2.5117936842861989524e-8,
        ),
        log=(
            0.66666666666666595948,
            0.40000000000056932431,
            0.28571428555771586092,
            0.22222224302511543626,
            0.18181665529328348952,
            0.15391122887521938972,
            0.13173420084135942913,
            0.13844228175707582886,
        ),
        erf_range=6.0,
        erf_near=(
            0.12837916709551256568,
            -0.37612638903183520025,
            0.11283791670944200308,
            -0.026866170643113413715,
            0.0052239776061308421667,
            -0.00085483259297662442975,
            0.00012055293586936949976,
            -0.000014924712439534814108,
            1.6447132699786621009e-6,
            -1.6206318752969209004e-7,
            1.3710988704190523118e-8,
            -7.7794629717615968919e-10,
        ),
        erf_far=(
            -1.7962477457410595778e-7,
            -1.1283773292158341676,
            -0.63662848915682821191,
            -0.10274725138376999398,
            0.019078153343988017022,
            0.00028049245146265285845,
            -0.0017690052826499153444,
            0.00064117697557305540162,
            -0.000044825572931678907988,
            -0.00007036481948547493818,
            0.000045036524567641112049,
            -0.000016513624954573774913,
            4.3269535129607828417e-6,
            -8.5055557190184166971e-7,
            1.2570206511420329011e-7,
            -1.3626384296271017139e-8,
            1.0256767527430516939e-9,
            -4.7959257818497259478e-11,
            1.049597086922954593e-12,
        ),
    ),
}
_LOG2_E = 1.4426950408889634


# Expansions

PRIMITIVES: Mapping[str, int] = {
    "add": 2,
    "sub": 2,
    "mul": 2,
    "div": 2,
    "max": 2,
    "min": 2,
    "neg": 1,
    "abs": 1,
    "sqrt": 1,
    "fma": 3,
    "round": 1,
    "ldexp": 2,
    "scale": 2,
    "exponent": 1,
    "mantissa": 1,
    **dict.fromkeys(COMPARISONS, 4),
}
"""Operations and how many arguments each takes.

max(a, b) is `a > b ? a : b` and min(a, b) is `a < b ? a : b`: a NaN in either gives b, as in x86.
<(a, b, x, y) is `a < b ? x : y`, and so are the other comparisons; a NaN is less than nothing, and equal to
nothing.
fma(a, b, c) is a * b + c, fused or not. round goes to the nearest integer, halves to even.
ldexp(a, n) is a * 2**n for an integral n within +-2000 (float64) or +-250 (float32).
scale(a, n) is the same where 2**n is a normal number, or infinite: for n from -1022 to 1024 or -126 to 128.
exponent(x) is floor(log2(abs(x))), -inf for 0, inf for +-inf.
mantissa(x) is abs(x) * 2**n with the n that brings it into [0.75, 1.5); 1 for 0 and +-inf, NaN for x < 0.
All give NaN for NaN, max, min and the comparisons excepted.
"""


class Primitive(NamedTuple):
    """One line of an expansion.

    Args:
        primitive: one of `PRIMITIVES`.
        args: each the number of an earlier value, or a constant. Number 0 is the function's argument,
            number i the result of the expansion's i-th operation, counted from 1.
    """

    primitive: str
    args: tuple[int | Const, ...]


class _Program:
    """Collects operations: a call appends one and returns its number, a method those of a function."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.fits = FITS[dtype]
        self.operations: list[Primitive] = []

    def __call__(self, primitive: str, *args: int | float) -> int:
        known = tuple(Const(a) if isinstance(a, float) else a for a in args)
        self.operations.append(Primitive(primitive, known))
        return len(self.operations)

    def polynomial(self, x: int, coefficients: tuple[float, ...]) -> int:
        """Horner's scheme; the constant term comes first."""
        # The highest two join in one fma: to begin with a constant alone would cost one operation more.
        high, *rest = reversed(coefficients)
        value = self("fma", x, high, rest[0])
        for c in rest[1:]:
            value = self("fma", x, value, c)
        return value

    def rest_of(self, x: int, sign: int = 1) -> tuple[int, int]:
        """Reduce: n and r with sign * x = n ln 2 + sign * r."""
        # Cody and Waite's reduction: n times the first part of ln 2 is exact, so r loses no digits.
        n = self("round", self("mul", x, sign * _LOG2_E))
        r = self("fma", n, -sign * self.fits.ln2[0], x)
        return n, self("fma", n, -sign * self.fits.ln2[1], r)

    def exp_parts(self, x: int) -> tuple[int, int]:
        """Reduce: n and e^r - 1 with x = n ln 2 + r."""
        n, r = self.rest_of(x)
        return n, self("fma", self("mul", r, r), self.polynomial(r, self.fits.exp), r)

    def within(self, low: float, high: float, x: int) -> int:
        # The constant comes first in max and min, so that NaN passes.
        return self("min", high, self("max", low, x))

    def exp(self, x: int) -> int:
        n, e = self.exp_parts(self.within(*self.fits.exp_range, x))
        return self("ldexp", self("add", e, 1.0), n)

    def normal_exp(self, x: int, sign: int = 1) -> int:
        """Compute exp(sign * x), for an argument within `Fits.normal_range`; less exactly."""
        n, r = self.rest_of(x, sign)
        coefficients = [sign**i * c for i, c in enumerate((1.0, 1.0, *self.fits.exp))]
        return self("scale", self.polynomial(r, tuple(coefficients)), n)

    def tanh(self, x: int) -> int:
        """(e^2x - 1) / (e^2x - 1 + 2), with e^2x - 1 computed without cancellation."""
        limit = self.fits.tanh_range
        x = self.within(-limit, limit, x)  # 2^n stays finite
        n, e = self.exp_parts(self("add", x, x))
        power = self("scale", 1.0, n)
        # e^2x - 1 = 2^n (e^r - 1) + (2^n - 1).
        e = self("fma", power, e, self("sub", power, 1.0))
        return self("div", e, self("add", e, 2.0))

    def sigmoid(self, x: int) -> int:
        # Above this range the result is 1; below it exp(-x) is inf, or so large that the result is almost 0.
        low, high = self.fits.normal_range
        return self("div", 1.0, self("add", self.normal_exp(self.within(-high, -low, x), -1), 1.0))

    def relu(self, x: int) -> int:
        # The constant first: a NaN is then the second argument, which is what max gives.
        return self("max", 0.0, x)

    def log(self, x: int) -> int:
        m = self("mantissa", x)
        # x = 2^n m, and m's own exponent is 0 or -1.
        n = self("sub", self("exponent", x), self("exponent", m))
        f = self("sub", m, 1.0)
        f2 = self("mul", f, f)
        if self.dtype == "float32":
            y = self("mul", self("mul", f, f2), self.polynomial(f, self.fits.log))
            y = self("fma", f2, -0.5, self("fma", n, self.fits.ln2[1], y))
        else:
            # As fdlibm: with s = f / (2 + f), log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + R(s^2))).
            s = self("div", f, self("add", f, 2.0))
            z = self("mul", s, s)
            half = self("mul", f2, 0.5)
            y = self("mul", s, self("fma", z, self.polynomial(z, self.fits.log), half))
            y = self("sub", self("fma", n, self.fits.ln2[1], y), half)
        return self("fma", n, self.fits.ln2[0], self("add", f, y))  # the exact and largest term last

    def erf(self, x: int) -> int:
        """x + x P(x^2) up to 1, and 1 - exp(Q(abs(x))) with x's sign beyond."""
        # erf(x) / x - 1 is what was fitted: x, its largest term, is added last and whole.
        near = self("fma", x, self.polynomial(self("mul", x, x), self.fits.erf_near), x)
        size = self("abs", x)
        a = self("min", self.fits.erf_range, size)
        # Of the magnitude, which the fit is for; erf is odd, so the sign comes last.
        far = self("sub", 1.0, self.normal_exp(self.polynomial(a, self.fits.erf_far)))
        far = self("<", x, 0.0, self("neg", far), far)
        return self("<", size, 1.0, near, far)


_WRITERS: Mapping[str, Callable[[_Program, int], int]] = {
    "exp": _Program.exp,
    "log": _Program.log,
    "tanh": _Program.tanh,
    "sigmoid": _Program.sigmoid,
    "relu": _Program.relu,
    "erf": _Program.erf,
}
EXPANDED = frozenset(_WRITERS)
"""The functions that are not primitives themselves; all take one argument."""


@cache
def expansion(function: str, dtype: str) -> tuple[Primitive, ...]:
    """Write a function in primitives.

    Args:
        function: one of `EXPANDED`.
        dtype: float32 or float64; for relu, any.

    Returns:
        The operations in order; the last one's result is the function's.
    """
    program = _Program("float32" if function == "relu" else dtype)
    _WRITERS[function](program, 0)
    return tuple(program.operations)
