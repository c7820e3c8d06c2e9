"""Values as they stand in a store, which may be anybody's: of the type that they should be, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

_T = TypeVar("_T")
_SHOWN = 40


def a(kind: type[_T], told: Any) -> _T:
    """Give a value that is of a type.

    Raises:
        TypeError: it is not.
    """
    # To Python a truth value is a whole number, too.
    if isinstance(told, kind) and (kind is bool or not isinstance(told, bool)):
        return told
    raise TypeError(f"{_shown(told)} is no {kind.__name__}")


def number(told: Any) -> float:
    """Give a number; JSON has whole ones too."""
    if isinstance(told, int | float) and not isinstance(told, bool):
        return told
    raise TypeError(f"{_shown(told)} is no number")


def numbers(told: Any) -> tuple[float, ...]:
    """Give a list of numbers."""
    return tuple(map(number, a(list, told)))


def texts(told: Any) -> tuple[str, ...]:
    """Give a list of texts."""
    return tuple(a(str, each) for each in a(list, told))


def by_name(told: Any) -> Mapping[str, float]:
    """Give numbers by name."""
    return {name: number(value) for name, value in a(dict, told).items()}


def _shown(told: Any) -> str:
    text = repr(told)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
