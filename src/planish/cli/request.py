"""What a user asks for, in the terms of the library."""

from __future__ import annotations

from collections.abc import Sequence

from planish.budget import Budget
from planish.search import split_settings
from planish.tune import DEFAULT_BUDGET


def budget_of(trials: int | None, seconds: float | None, value: float | None) -> Budget:
    """Make the budget; where neither trials nor seconds are given, the default's seconds hold.

    Raises:
        PlanishError: a limit is not positive.
    """
    limited = trials is not None or seconds is not None
    return Budget(trials, seconds if limited else DEFAULT_BUDGET.seconds, value)


def level_options(
    size: Sequence[str] | None, shape: Sequence[str] | None, dtype: str, option: Sequence[str] | None
) -> dict[str, str]:
    """Collect the options that say how to read a program, those given alone.

    Raises:
        PlanishError: an option is not of the form NAME=VALUE, or is given twice.
    """
    named = {"size": ",".join(size or ()), "shape": ",".join(shape or ()), "dtype": dtype}
    return {**{name: value for name, value in named.items() if value}, **split_settings(option or ())}


def names(text: str) -> tuple[str, ...]:
    """Split a list of names at its commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
