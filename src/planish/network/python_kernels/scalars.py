"""Functions of one, two or three numbers that programs of `loops` lack, as a Python kernel.

Whole numbers are those of NumPy. Trigonometric functions and powers are computed in double, from a few
polynomials, and are right to the last places of float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from planish.network.python_kernels.intrinsics import bits_of_float, float_of_bits

# Whole numbers


def divide(a: Any, b: Any) -> Any:
    """Return a / b towards 0; 0 where b is 0."""
    if b == 0:
        return 0
    if (a < 0) == (b < 0):
        return abs(a) // abs(b)
    return -(abs(a) // abs(b))


def modulo(a: Any, b: Any) -> Any:
    """Return the rest of a / b, with the sign of b; 0 where b is 0."""
    if b == 0:
        return 0
    return a % b


def remainder(a: Any, b: Any) -> Any:
    """Return the rest of a / b, with the sign of a."""
    return a - divide(a, b) * b


def power(a: Any, b: Any) -> Any:
    """Return a ** b; 0 for negative exponents, but of 1 and -1."""
    if b < 0:
        if a == 1:
            return 1
        if a == -1:
            return 1 - 2 * (b & 1)
        return 0
    result = 1
    base = a
    n = b
    while n > 0:
        if (n & 1) == 1:
            result = result * base
        base = base * base
        n = n >> 1
    return result


def sign(a: Any) -> Any:
    """Return -1, 0 or 1."""
    return int(a > 0) - int(a < 0)


def within(a: Any, low: Any, high: Any) -> Any:
    """Return the nearest number from low to high."""
    return min(max(a, low), high)


def choose(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds, else b."""
    return a if condition != 0 else b


def shift_left(a: Any, b: Any) -> Any:
    """Return the bits, moved up."""
    return a << b if b < 64 else 0


def shift_right(a: Any, b: Any) -> Any:
    """Return the bits of a number that is not negative, moved down."""
    return a >> b if b < 64 else 0


# Conversions


def same(a: Any) -> Any:
    """Return the number itself; storing it converts it."""
    return a


def truncated(a: Any) -> Any:
    """Return the whole number towards 0."""
    return int(a)


def truth(a: Any) -> Any:
    """Return whether a number is not 0."""
    return a != 0


# Floats


def float_modulo(a: Any, b: Any) -> Any:
    """Return the rest of a / b, with the sign of b."""
    x = np.float64(a)
    y = np.float64(b)
    return x - np.floor(x / y) * y


def float_remainder(a: Any, b: Any) -> Any:
    """Return the rest of a / b, with the sign of a."""
    x = np.float64(a)
    y = np.float64(b)
    return x - np.trunc(x / y) * y


def float_power(a: Any, b: Any) -> Any:
    """Return a ** b."""
    x = np.float64(a)
    y = np.float64(b)
    if y == 0 or x == 1:
        return np.float64(1.0)
    if x == 0:
        return np.float64(0.0) if y > 0 else np.float64(math.inf)
    size = np.exp(y * np.log(abs(x)))
    if x > 0 or np.isnan(x):
        return size
    if np.floor(y) != y:
        return size if abs(x) == math.inf else np.float64(math.nan)
    odd = y - 2 * np.floor(y * 0.5)
    return size - 2 * odd * size


def _sine_of_small(x: Any) -> Any:
    """Return sin(x) for |x| <= pi / 4."""
    z = x * x
    p = -2.50507477628578072866e-8 + z * 1.58962301576546568060e-10
    p = 2.75573136213857245213e-6 + z * p
    p = -1.98412698295895385996e-4 + z * p
    p = 8.33333333332211858878e-3 + z * p
    p = -1.66666666666666307295e-1 + z * p
    return x + x * z * p


def _cosine_of_small(x: Any) -> Any:
    """Return cos(x) for |x| <= pi / 4."""
    z = x * x
    p = 2.08757008419747316778e-9 - z * 1.13585365213876817300e-11
    p = -2.75573141792967388112e-7 + z * p
    p = 2.48015872888517045348e-5 + z * p
    p = -1.38888888888730564116e-3 + z * p
    p = 4.16666666666665929218e-2 + z * p
    return 1.0 - 0.5 * z + z * z * p


def _turned(x: Any, quarters: Any) -> Any:
    """Return sin(x + quarters * pi / 2)."""
    n = np.rint(x * 0.63661977236758134308)
    # pi / 2 in three parts, whose products with n are exact.
    rest = x - n * 1.5707963267341256
    rest = rest - n * 6.077100506303966e-11
    rest = rest - n * 2.0222662487959506e-21
    quarter = (int(n) + quarters) & 3
    size = _cosine_of_small(rest) if (quarter & 1) == 1 else _sine_of_small(rest)
    return -size if quarter >= 2 else size


def sine(a: Any) -> Any:
    """Return sin(a)."""
    return _turned(np.float64(a), 0)


def cosine(a: Any) -> Any:
    """Return cos(a)."""
    return _turned(np.float64(a), 1)


def tangent(a: Any) -> Any:
    """Return tan(a)."""
    return _turned(np.float64(a), 0) / _turned(np.float64(a), 1)


def _arctangent(x: Any) -> Any:
    """Return atan(x) in double."""
    size = abs(x)
    high = size > 2.414213562373095
    middle = size > 0.41421356237309503
    y = -1.0 / size if high else ((size - 1.0) / (size + 1.0) if middle else size)
    start = 1.5707963267948966 if high else (0.7853981633974483 if middle else 0.0)
    z = y * y
    p = -8.750608600031904122785e-1 * z - 1.615753718733365076637e1
    p = p * z - 7.500855792314704667340e1
    p = p * z - 1.228866684490136173410e2
    p = p * z - 6.485021904942025371773e1
    q = z + 2.485846490142306297962e1
    q = q * z + 1.650270098316988542046e2
    q = q * z + 4.328810604912902668951e2
    q = q * z + 4.853903996359136964868e2
    q = q * z + 1.945506571482613964425e2
    result = start + (y + y * z * (p / q))
    return -result if x < 0 else result


def arctangent(a: Any) -> Any:
    """Return atan(a)."""
    return _arctangent(np.float64(a))


def arcsine(a: Any) -> Any:
    """Return asin(a)."""
    x = np.float64(a)
    return _arctangent(x / np.sqrt((1.0 - x) * (1.0 + x)))


def arccosine(a: Any) -> Any:
    """Return acos(a)."""
    x = np.float64(a)
    return 2.0 * _arctangent(np.sqrt((1.0 - x) / (1.0 + x)))


def hyperbolic_sine(a: Any) -> Any:
    """Return sinh(a)."""
    x = np.float64(a)
    if abs(x) < 0.01:
        return x + x * x * x * (1.0 / 6.0)
    power_of_e = np.exp(x)
    return 0.5 * (power_of_e - 1.0 / power_of_e)


def hyperbolic_cosine(a: Any) -> Any:
    """Return cosh(a)."""
    power_of_e = np.exp(np.float64(a))
    return 0.5 * (power_of_e + 1.0 / power_of_e)


def inverse_hyperbolic_sine(a: Any) -> Any:
    """Return asinh(a)."""
    x = abs(np.float64(a))
    size = np.log(x + np.sqrt(x * x + 1.0)) if x > 0.001 else x - x * x * x * (1.0 / 6.0)
    return -size if a < 0 else size


def inverse_hyperbolic_cosine(a: Any) -> Any:
    """Return acosh(a)."""
    x = np.float64(a)
    return np.log(x + np.sqrt((x - 1.0) * (x + 1.0)))


def inverse_hyperbolic_tangent(a: Any) -> Any:
    """Return atanh(a)."""
    x = np.float64(a)
    if abs(x) < 0.001:
        return x + x * x * x * (1.0 / 3.0)
    return 0.5 * np.log((1.0 + x) / (1.0 - x))


def rectified(a: Any) -> Any:
    """Return the number, or 0 where it is negative."""
    return max(a, 0.0)


def hard_sigmoid(a: Any) -> Any:
    """Return a / 5 + 1 / 2 within 0 and 1."""
    return max(0.0, min(1.0, a * 0.2 + 0.5))


def soft_sign(a: Any) -> Any:
    """Return a / (1 + |a|)."""
    return a / (1.0 + abs(a))


def square(a: Any) -> Any:
    """Return a * a."""
    return a * a


# float16


def half_to_float(bits: Any) -> Any:
    """Return the number that the 16 bits of a float16 stand for."""
    magnitude = (bits & 0x7FFF) << 13
    scaled = (
        float_of_bits(magnitude) * 5.192296858534828e33
    )  # 2 ** 112: the difference of the exponents' biases
    infinite = float_of_bits(magnitude | 0x7F800000)
    found = infinite if magnitude >= 0x0F800000 else scaled
    return -found if bits >= 0x8000 else found


def float_to_half(a: Any) -> Any:
    """Return the 16 bits of the float16 nearest to a float32, to even."""
    bits = bits_of_float(a)
    magnitude = bits & 0x7FFFFFFF
    sign = (bits >> 16) & 0x8000
    # Adding one half shifts the fraction of a small number to where that of float16 is.
    small = bits_of_float(float_of_bits(magnitude) + 0.5) - 0x3F000000
    normal = (magnitude - 0x38000000 + 0xFFF + ((magnitude >> 13) & 1)) >> 13
    large = 0x7E00 if magnitude > 0x7F800000 else 0x7C00
    found = small if magnitude < 0x38800000 else normal
    return sign | (large if magnitude >= 0x47800000 else found)


def bfloat16_of_float(a: Any) -> Any:
    """Return the 16 bits of the bfloat16 nearest to a float32, to even; NaN is quiet."""
    bits = bits_of_float(a)
    nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return 0x7FC0 if (bits & 0x7FFFFFFF) > 0x7F800000 else nearest
