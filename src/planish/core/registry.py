"""Registries of thunks: levels, searchers and back ends are named here and imported only when used.

Other packages offer entry points, too, which may be broken. Then `PluginError` names the package, so that the
error is not taken for one of planish, and whatever else is offered can be used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from planish.core.errors import PlanishError, ProgramError, unknown

if TYPE_CHECKING:
    from planish.core.level import Level
    from planish.core.task import Program

_Made = TypeVar("_Made")

OWN = "planish"
"""The distribution whose errors are planish's own."""

# The files of all packages are read for one group as for all of them, which takes milliseconds.
_installed = cache(entry_points)

LEVELS = "planish.levels"
OF_TENSORS = "loops"
"""The level that is asked first where a source begins with a tensor, so that no other is loaded."""
_TENSOR = re.compile(r"\s*\w+\[")


class PluginError(PlanishError):
    """An entry point of another package cannot be used; the message names the package and the reason."""


@cache
def _entries(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by name; several where packages offer different ones."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for entry in _installed().select(group=group):
        found.setdefault(entry.name, {}).setdefault(entry.value, entry)
    return {name: tuple(by_value.values()) for name, by_value in found.items()}


def names(group: str) -> list[str]:
    """List what a group offers (as `planish.levels`), without importing any."""
    return sorted(_entries(group))


def load(group: str, name: str) -> Callable[..., Any]:
    """Import one entry of a group.

    Raises:
        PluginError: two packages offer it, or it cannot be imported from another package.
        PlanishError: the name is unknown.
    """
    entries = _entries(group)
    if name not in entries:
        raise unknown(f"unknown {_kind(group)}", name, entries)
    first, *others = entries[name]
    if others:
        offered = " and ".join(map(_origin, (first, *others)))
        raise PluginError(
            f"{_kind(group)} '{name}' is offered by two packages, {offered}", "Uninstall one of them."
        )
    with attributed(group, name):
        return first.load()


@contextmanager
def attributed(group: str, name: str) -> Generator[None]:
    """Raise an error in what another package offers as a `PluginError` that names the package.

    Args:
        group: of the entry point.
        name: of the entry point.

    Raises:
        PluginError: whatever was raised, except by planish's own entry points.
    """
    try:
        yield
    except PluginError:
        raise
    except Exception as error:
        entry = _entries(group).get(name, (None,))[0]
        if entry is None or _distribution(entry) == OWN:
            raise
        package = _distribution(entry) or "the package"
        reason = str(error) if isinstance(error, PlanishError) else f"{type(error).__name__}: {error}"
        raise PluginError(
            f"{_kind(group)} '{name}' cannot be loaded from {_origin(entry)}: {' '.join(reason.split())}",
            f"Fix or uninstall {package}.",
        ) from error


def each_usable(group: str, make: Callable[[str], _Made]) -> tuple[dict[str, _Made], list[PluginError]]:
    """Make something of each name of a group.

    Args:
        group: whose names.
        make: makes it of a name.

    Returns:
        What was made by name, and the errors of other packages' entry points of which nothing could be made.
    """
    made: dict[str, _Made] = {}
    broken: list[PluginError] = []
    for name in names(group):
        try:
            made[name] = make(name)
        except PluginError as error:
            broken.append(error)
    return made, broken


def _kind(group: str) -> str:
    return {"planish.loops.backends": "back end"}.get(group, group.removeprefix("planish.").removesuffix("s"))


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else ""


def _origin(entry: EntryPoint) -> str:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"
    return f"{package} ({entry.value})"


def level_named(name: str) -> Level:
    """Load a level.

    Raises:
        PlanishError: there is none of this name, or another package's cannot be used.
    """
    factory = load(LEVELS, name)
    with attributed(LEVELS, name):
        return factory()


def level_of(source: str) -> Level:
    """Find the level that a source belongs to: a file's path, or a program's text.

    Raises:
        ProgramError: no installed level reads it.
    """
    known = names(LEVELS)
    broken: list[str] = []
    # One after the other: to import a level takes up to 0.1 s.
    first = OF_TENSORS if _TENSOR.match(source) else ""
    for name in sorted(known, key=lambda name: name != first):
        try:
            level = level_named(name)
            with attributed(LEVELS, name):
                if level.accepts(source):
                    return level
        except PluginError as error:  # another level may read it
            broken.append(error.message)
    with suppress(OSError):  # a text may be too long for a path
        if Path(source).is_dir():
            raise ProgramError(f"'{source}' is a folder", "Name a file.")
        if Path(source).suffix and not Path(source).exists():
            raise ProgramError(f"there is no file '{source}'", "Check the path.")
    if "->" in source:
        example = "Write C[m,n] += A[m,k] * B[k,n] (docs/reference/notation.md), or call planish.einsum."
        raise ProgramError(f"'{source}' is in the notation of einsum", example)
    unusable = "".join(f" Not usable: {message}." for message in broken)
    hint = f'Name one: settings=Settings(level="NAME"); installed: {", ".join(known)}.{unusable}'
    raise ProgramError(f"no level reads '{source}'", hint)


def load_program(source: str, level: str, options: Mapping[str, str]) -> tuple[Level, Program]:
    """Read a program, with the level of this name, or, if it is empty, with the one that accepts it."""
    if not source.strip():
        raise ProgramError("the program is empty", "Give a program's text, or the path of a file.")
    found = level_named(level) if level else level_of(source)
    return found, found.load(source, options)
