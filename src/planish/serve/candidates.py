"""Candidates as clients submit them: steps are read only where their names, options and types are known."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from planish.core import Candidate, ProgramError, Step
from planish.core.step import step_from_json


class MalformedError(ValueError):
    """Error of a submission that is no list of steps."""


def read_candidate(raw: object, known: Mapping[str, type[Step]], most: int) -> Candidate:
    """Read a candidate from JSON.

    Args:
        raw: a list of steps, each `[NAME, {OPTION: VALUE}]`.
        known: step name to class, as the level lists them.
        most: steps at most.

    Raises:
        MalformedError: it is no list of steps, or has too many.
        ProgramError: a step, an option or the type of a value is unknown.
    """
    if not isinstance(raw, list):
        raise MalformedError("steps is a list of steps, each [NAME, {OPTION: VALUE}].")
    items: list[Any] = raw
    if len(items) > most:
        raise MalformedError(f"{len(items)} steps are more than {most}, which a candidate may have.")
    return Candidate(tuple(_step(item, known) for item in items))


def _step(item: Any, known: Mapping[str, type[Step]]) -> Step:
    match item:
        case [str() as name, dict() as options] if all(isinstance(key, str) for key in options):
            step = step_from_json([name, options], known)
        case _:
            raise MalformedError(f"a step is [NAME, {{OPTION: VALUE}}], not {str(item)[:100]}.")
    for option, hint in get_type_hints(type(step)).items():
        if option in step.__dataclass_fields__ and not fits(getattr(step, option), hint):
            what = f"step '{name}': {option} takes {_written(hint)}, not {str(getattr(step, option))[:100]!r}"
            raise ProgramError(what)
    return step


def fits(value: object, hint: Any) -> bool:
    """Return whether a value is of the type of an option; what is no plain type fits."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in arguments)
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _items_fit(value, arguments)
    if hint is Any or not isinstance(hint, type):
        return True
    # By type and not isinstance, for which True is a whole number.
    return type(value) in ((int, float) if hint is float else (hint,))


def _items_fit(items: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(fits(each, hints[0]) for each in items)
    return len(items) == len(hints) and all(map(fits, items, hints))


def _written(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")
