"""Registries of thunks: levels, searchers and back ends are named here and imported only when used."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from planish.core.errors import PlanishError, unknown

# The files of all packages are read for one group as for all of them, which takes milliseconds.
_installed = cache(entry_points)


@cache
def _entries(group: str) -> Mapping[str, EntryPoint]:
    found: dict[str, EntryPoint] = {}
    for entry in _installed().select(group=group):
        if entry.name in found and found[entry.name].value != entry.value:
            raise PlanishError(
                f"two packages offer '{entry.name}' in {group}: {found[entry.name].value} and {entry.value}",
                "Uninstall one of them.",
            )
        found[entry.name] = entry
    return found


def names(group: str) -> list[str]:
    """List what a group offers (as `planish.levels`), without importing any."""
    return sorted(_entries(group))


def load(group: str, name: str) -> Callable[..., Any]:
    """Import one entry of a group.

    Raises:
        PlanishError: the name is unknown, or two packages claim it.
    """
    entries = _entries(group)
    if name not in entries:
        kind = group.removeprefix("planish.").removesuffix("s")
        raise unknown(f"unknown {kind}", name, entries)
    return entries[name].load()
