"""Registries of thunks: levels, searchers and back ends are named here and imported only when used.

Other packages offer entry points, too, which may be broken. Then `PluginError` names the package, so that the
error is not taken for one of planish, and whatever else is offered can be used.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from planish.core.errors import PlanishError, unknown

_Made = TypeVar("_Made")

OWN = "planish"
"""The distribution whose errors are planish's own."""

# The files of all packages are read for one group as for all of them, which takes milliseconds.
_installed = cache(entry_points)


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
