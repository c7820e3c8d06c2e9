"""Comparisons at the end of a run that are short: what they find does not matter to the test."""

from collections.abc import Callable

from planish.measure import Plan
from planish.tuning import budget, validate


def shorten_comparisons(setattr_: Callable[[object, str, object], None]) -> None:
    """Have searches and validations compare in one process, three rounds, however undecided that leaves them.

    Args:
        setattr_: of a `pytest.MonkeyPatch`, which undoes it.
    """
    for module in (budget, validate):
        setattr_(module, "PLAN", Plan(processes=1, most=1))
