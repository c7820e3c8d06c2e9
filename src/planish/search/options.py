"""The options of a searcher: the keyword-only arguments of its constructor, typed and documented."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from planish.core import PlanishError, unknown

OptionValue = bool | int | float | str

_KINDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Option:
    """Documents an option where it is declared: `width: Annotated[int, Option("...", least=1)] = 4`.

    Args:
        help: what it does, in a few words.
        least: the smallest legal number.
        most: the largest legal number.
    """

    help: str = ""
    least: float = -math.inf
    most: float = math.inf


@dataclass(frozen=True)
class OptionInfo:
    """What is known of a searcher's option.

    Args:
        name: as the user writes it.
        kind: bool, int, float or str.
        default: its value where none is given.
        option: its help and bounds.
    """

    name: str
    kind: type
    default: OptionValue
    option: Option

    def read(self, value: OptionValue) -> OptionValue:
        """Check a value, and convert it where it is a text.

        Raises:
            PlanishError: it is of another type, or out of bounds.
        """
        found = self._converted(value)
        if found is None or not (isinstance(found, str) or self._within(found)):
            raise PlanishError(f"option '{self.name}' takes {self.legal}, not {value!r}")
        return found

    def _within(self, number: float) -> bool:
        return math.isfinite(number) and self.option.least <= number <= self.option.most

    @property
    def legal(self) -> str:
        """What it takes, in words."""
        least, most = self.option.least, self.option.most
        lower = f", at least {least:g}" if least > -math.inf else ""
        upper = f", at most {most:g}" if most < math.inf else ""
        return _KINDS[self.kind] + lower + upper

    def _converted(self, value: OptionValue) -> Any:
        if self.kind is bool and isinstance(value, str):
            return {"true": True, "false": False}.get(value.lower())
        # By type and not isinstance, for which True is a whole number.
        if isinstance(value, str) or (self.kind is float and type(value) is int):
            try:
                return self.kind(value)
            except ValueError:
                return None
        return value if type(value) is self.kind else None


def options_of(factory: Callable[..., Any]) -> dict[str, OptionInfo]:
    """List the options of a searcher: its keyword-only arguments, in their order.

    Args:
        factory: a searcher's class or function; each option has a default and the type bool, int,
            float or str, plain or `Annotated[type, Option(...)]`.
    """
    # Evaluated: under `from __future__ import annotations` they are texts, which have no bounds.
    parameters = inspect.signature(factory, eval_str=True).parameters.values()
    return {p.name: _info(p) for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


def _info(parameter: inspect.Parameter) -> OptionInfo:
    kind, notes = parameter.annotation, ()
    if get_origin(kind) is Annotated:
        # Other libraries may annotate the same argument, so only notes of ours are read.
        kind, *notes = get_args(kind)
    option = next((note for note in notes if isinstance(note, Option)), Option())
    return OptionInfo(parameter.name, kind, parameter.default, option)


def read_options(factory: Callable[..., Any], values: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """Check options against what a searcher takes; texts are converted to the option's type.

    Raises:
        PlanishError: an option is unknown, of another type or out of bounds.
    """
    known = options_of(factory)
    # A misspelt option would silently be its default, and a whole search would be run with it.
    for name in values:
        if name not in known:
            raise unknown("unknown option", name, known)
    return {name: known[name].read(value) for name, value in values.items()}


def split_settings(settings: Iterable[str]) -> dict[str, str]:
    """Read `name=value` texts, as a command line has them.

    Raises:
        PlanishError: a text is not of that form, or a name comes twice.
    """
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not (name and equals) or name in found:
            wrong = "is given twice" if name in found else "is not of the form name=value"
            raise PlanishError(f"option '{setting}' {wrong}", "Write each option once, as name=value.")
        found[name] = value
    return found
