"""Comparisons, and the choice between two values by one: `where(a < b, x, y)`.

A comparison alone is 1 or 0, and so `a < b` is `where(a < b, 1, 0)`; a choice by any other value takes the
first where that is not 0.
"""

from __future__ import annotations

from planish.loops.lang.program import COMPARISONS, Apply, Const, Expr

TESTS = (*COMPARISONS, ">", ">=")
"""Comparisons as they are written; `a > b` is `b < a`."""

_ALONE = Const(1.0), Const(0.0)


def compared(test: str, left: Expr, right: Expr) -> Apply:
    """Compare two values by one of `TESTS`."""
    if test in (">", ">="):
        return Apply(test.replace(">", "<"), (right, left, *_ALONE))
    return Apply(test, (left, right, *_ALONE))


def chosen(condition: Expr, yes: Expr, no: Expr) -> Apply:
    """Choose between two values."""
    # A comparison alone is chosen by itself: to compare its 1 or 0 with 0 again would be one operation more.
    if not (
        isinstance(condition, Apply) and condition.function in COMPARISONS and condition.args[2:] == _ALONE
    ):
        condition = compared("!=", condition, Const(0.0))
    return Apply(condition.function, (*condition.args[:2], yes, no))
