"""What a user asks for, in the terms of the library."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, NamedTuple

from planish.budget import Budget
from planish.core import PlanishError
from planish.search import split_settings
from planish.settings import Settings
from planish.tuning.api import DEFAULT_BUDGET, tune


class Request(NamedTuple):
    """A program to tune, how to read it, how to search, and for how long."""

    program: str
    options: dict[str, Any]
    settings: Settings
    budget: Budget


def budget_of(
    trials: int | None, seconds: float | None, value: float | None, usual: Budget = DEFAULT_BUDGET
) -> Budget:
    """Make the budget; where neither trials nor seconds are given, the usual one's seconds hold.

    Raises:
        PlanishError: a limit is not positive.
    """
    limited = trials is not None or seconds is not None
    return Budget(trials, seconds if limited else usual.seconds, value)


def level_options(
    size: Sequence[str] | None,
    shape: Sequence[str] | None,
    option: Sequence[str] | None,
    **others: str,
) -> dict[str, Any]:
    """Collect the options that say how to read a program, those given alone: texts by name.

    Args:
        size: extents of axes; joined by commas.
        shape: shapes of tensors; joined by commas.
        option: any others, NAME=VALUE.
        others: options of a name of their own on the command line; empty where they are not given.

    Raises:
        PlanishError: an option is not of the form NAME=VALUE, or is given twice, or has a name that no
            level's option can have.
    """
    named = {"size": ",".join(size or ()), "shape": ",".join(shape or ()), **others}
    further = split_settings(option or ())
    for name in further:
        if name in signature(tune).parameters:
            raise PlanishError(f"no level has an option '{name}'", f"Did you mean --{name}?")
    return {**{name: value for name, value in named.items() if value}, **further}


def names(text: str) -> tuple[str, ...]:
    """Split a list of names at its commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
