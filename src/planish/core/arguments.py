"""Checks of the arguments of public functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from math import isfinite
from numbers import Integral, Real
from typing import Any, TypeVar

from planish.core.errors import ArgumentError, did_you_mean

T = TypeVar("T")

_SHOWN = 60
"""Characters of a wrong argument that an error shows."""


def wrong_argument(name: str, value: object, takes: str, hint: str = "") -> ArgumentError:
    """Make the error for a wrong argument.

    Args:
        name: the argument's.
        value: what was given.
        takes: what it takes, such as "a whole number".
        hint: what to write instead.
    """
    return ArgumentError(f"{name}= takes {takes}, not {_shown(value)}", hint)


def check_whole_number(name: str, value: object, least: int | None = None) -> None:
    """Raise ArgumentError unless an argument is a whole number, and at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise wrong_argument(name, value, "a whole number", _converted(name, value, int))
    if least is not None and int(value) < least:
        raise wrong_argument(name, value, f"a whole number of at least {least}")


def check_number(name: str, value: object) -> None:
    """Raise ArgumentError unless an argument is a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise wrong_argument(name, value, "a number", _converted(name, value, float))


def check_positive(name: str, value: object) -> None:
    """Raise ArgumentError unless an argument is a finite number above 0."""
    check_number(name, value)
    if not (isinstance(value, Real) and isfinite(value) and float(value) > 0):
        raise wrong_argument(name, value, "a number above 0")


def check_finite(name: str, value: object) -> None:
    """Raise ArgumentError unless an argument is a finite number."""
    check_number(name, value)
    if not (isinstance(value, Real) and isfinite(value)):
        raise wrong_argument(name, value, "a finite number")


def check_type(name: str, value: object, types: type | tuple[type, ...], takes: str, hint: str = "") -> None:
    """Raise ArgumentError unless an argument is of a type; `takes` names the type for people."""
    if not isinstance(value, types):
        raise wrong_argument(name, value, takes, hint)


def check_keywords(synonyms: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """Return a class decorator: an unknown keyword of the constructor raises ArgumentError.

    Args:
        synonyms: names of other libraries for arguments, each with the argument's name here.
    """

    def decorate(cls: type[T]) -> type[T]:
        made: Any = cls.__init__
        known = [*signature(cls).parameters]

        @wraps(made)
        def checked(self: T, *values: object, **keywords: object) -> None:
            for name in keywords:
                if name not in known:
                    what = f"{cls.__name__}() has no argument '{name}'"
                    raise ArgumentError(what, suggest_argument(name, known, synonyms))
            made(self, *values, **keywords)

        setattr(cls, "__init__", checked)  # noqa: B010  (a type checker refuses the plain assignment)
        return cls

    return decorate


def suggest_argument(name: str, known: Iterable[str], synonyms: Mapping[str, str]) -> str:
    """Return the hint for an unknown argument: the one of the same meaning, else as `did_you_mean`."""
    known = {*known}
    meant = synonyms.get(name, "")
    return f"Did you mean '{meant}'?" if meant in known else did_you_mean(name, known)


def _converted(name: str, value: object, number: type[int] | type[float]) -> str:
    """Return the hint for a text or a float that means a number."""
    if isinstance(value, str | float):
        try:
            meant = number(value)
        except (ValueError, OverflowError):
            return ""
        return f"Write {name}={meant}."
    return ""


def _shown(value: object) -> str:
    """Describe a value for an error, with its type where the text does not show it."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  (a repr is the user's code: whatever it raises, the type is shown)
        text = f"without a repr ({type(error).__name__})"
    first, *more = text.splitlines() or [""]
    text = first if not more and len(first) <= _SHOWN else f"{first[:_SHOWN]}..."
    return f"{text} ({type(value).__name__})"
