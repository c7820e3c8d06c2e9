"""Whether tables of what pass lists cost fit together, in the same words everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planish.core import PlanishError
from planish.learn.cost_table import Columns

COUNTED = ("llvm", "machine")
"""What has to be the same wherever costs of two tables stand side by side."""
DESCRIBED = ("features", "version")
"""What has to be the same where functions are described alike."""
EVERYTHING = tuple(Columns.__dataclass_fields__)
_WORDS = {"llvm": "LLVM", "version": "version of features"}
_LONG = ("lists", "features")


def require_alike(
    one: tuple[str, Columns],
    other: tuple[str, Columns],
    kinds: Iterable[str],
    hint: str = "Leave one of them out.",
) -> None:
    """Raise PlanishError where the columns of two tables differ.

    Args:
        one: its name for the message, and its columns.
        other: likewise.
        kinds: fields of `Columns` that have to be the same.
        hint: mends it.
    """
    for kind in kinds:
        mine, its = getattr(one[1], kind), getattr(other[1], kind)
        if mine != its:
            values = "" if kind in _LONG else f": {_told(mine)} and {_told(its)}"
            raise PlanishError(f"{one[0]} and {other[0]} differ in {_WORDS.get(kind, kind)}{values}", hint)


def require_same_baseline(identity: str, one: Sequence[int], other: Sequence[int]) -> None:
    """Raise PlanishError where a function's cost after -Oz is not the same in two tables."""
    if list(one) != list(other):
        what = f"function {identity} costs {_told(one)} after -Oz in one table, and {_told(other)} in another"
        raise PlanishError(what, "They are of different tools: leave one of them out, or make it anew.")


def _told(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
