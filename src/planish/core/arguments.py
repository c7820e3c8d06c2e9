"""Checks of the arguments of public functions, and how the command line calls them.

Messages name the arguments of Python, each followed by `=`: `size="m=192"`. `as_options` writes them as the
options of the command line, which shows the same errors.
"""

from __future__ import annotations

import os
import re
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


def check_path(name: str, value: object, *, optional: bool = False) -> None:
    """Raise ArgumentError unless an argument is a text or an `os.PathLike`; None passes where optional."""
    if not (isinstance(value, str | os.PathLike) or (optional and value is None)):
        raise wrong_argument(name, value, "a path")


def check_paths(name: str, values: object) -> None:
    """Raise ArgumentError unless an argument is a list of paths."""
    if isinstance(values, str | os.PathLike):
        raise wrong_argument(name, values, "a list of paths", f"Write {name}=[{os.fspath(values)!r}].")
    check_type(name, values, Iterable, "a list of paths")
    for each in values if isinstance(values, list | tuple) else ():
        if not isinstance(each, str | os.PathLike):
            raise wrong_argument(name, each, "paths")


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


_NAMES = """
    args backend cores data device dtype executor finalists host level limit link name objective pick port
    precision processes remeasure run searcher seconds seed shape size space stdin store tolerance trials
    workers workload
"""
_RENAMED = {"address": "--ray", "files": "--file", "objectives": "--objective", "target": "--target-value"}
_OPTIONS = {name: f"--{name}" for name in _NAMES.split()} | _RENAMED
"""Arguments that are options of commands."""

_OPTIONS_OF_LEVELS = ("batch", "constant", "harness", "inputs", "metric")
"""Arguments of `planish.tune` that the command line takes as `--option NAME=VALUE`."""

_ARGUMENT = re.compile(
    r"""settings=Settings\((?P<inner>[^()]*)\)            # what is inside is written alone
    | searcher_options=\{"(?P<setting>\w+)":\s"?(?P<to>[^"}]*)"?\}
    | (?<![\w.'"=-])(?P<name>\w+)=                     # no part of another word or value
      (?:\["(?P<item>[^"]*)"\] | "(?P<text>[^"]*)" | (?P<value>\.\.\.|True|[\d.]*\d) | (?=[\s.,;)]|$))""",
    re.VERBOSE,
)


def as_options(text: str) -> str:
    """Return a message with the options of the command line in place of the arguments of Python.

    Examples:
        >>> as_options('Write size="m=192,n=192".')
        'Write --size m=192,n=192.'
        >>> as_options("trials= takes a whole number, not 2.5. Write trials=2.")
        '--trials takes a whole number, not 2.5. Write --trials 2.'
    """
    return _ARGUMENT.sub(_option, text)


def _option(argument: re.Match[str]) -> str:
    if argument["inner"] is not None:
        return as_options(argument["inner"])
    if argument["setting"]:
        return f"--set {argument['setting']}={argument['to']}"
    name = argument["name"]
    value = next((argument[kind] for kind in ("item", "text", "value") if argument[kind] is not None), "")
    if name in _OPTIONS_OF_LEVELS:
        return f"--option {name}={value}"
    if name not in _OPTIONS:
        return argument[0]
    return f"{_OPTIONS[name]} {value}" if value and value != "True" else _OPTIONS[name]
