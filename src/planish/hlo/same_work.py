"""Whether two modules do the same work, so that one takes as long as the other by construction."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"dense<([^<>\"\[\]]+)> : (tensor<(?:\d+x)*b?f\d+>)")
_DECIDING = ("stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.power", "custom_call")
"""What does other work where a number is another one."""
_TINY = 1e-30
"""Below it processors may be slow."""


def work_of(text: str) -> str:
    """Give a module's text with names for the floating-point numbers that do not change how long it takes.

    Modules of equal texts have the same operations, and differ in such numbers alone, as where a learning
    rate is another one. Numbers that are equal have one name, since a compiler computes once what is equal.
    Powers of two, 0 and what is not finite keep their values: compilers make simpler operations of some.

    Args:
        text: of a module; where something in it may do more or less by a number, it stays as it is.
    """
    if any(name in text for name in _DECIDING):
        return text
    names = dict[float, int]()

    def named(found: re.Match[str]) -> str:
        value = _value(found[1])
        if value is None:
            return found[0]
        sign = "-" if value < 0 else ""
        return f"dense<{sign}number {names.setdefault(abs(value), len(names))}> : {found[2]}"

    return _NUMBER.sub(named, text)


def _value(number: str) -> float | None:
    """Read a number; None where another one may take another time."""
    try:
        value = float(number)
    except ValueError:  # such as 0xFF800000: infinite, or not a number
        return None
    power_of_two = abs(math.frexp(value)[0]) == 0.5
    return None if power_of_two or abs(value) < _TINY or not math.isfinite(value) else value
