"""What this machine offers the level: compilers and their versions."""

from __future__ import annotations

from collections.abc import Mapping

from planish.core import PlanishError, Target, TargetError, processor, usable_cores
from planish.hlo.installed import BACKENDS, versions
from planish.isolation.cage import told


def hlo_target(cores: int, backend: str = "") -> Target:
    """Describe this machine.

    Args:
        cores: that the module may use.
        backend: one of `BACKENDS`; empty for the first.

    Raises:
        TargetError: there are not so many cores, or no such back end.
    """
    there = usable_cores()
    if not 1 <= cores <= there:
        raise TargetError(f"{cores} cores asked for, this machine offers {there}", "Use --cores.")
    return Target(processor(), frozenset(), cores, versions(backend))


def machine_facts() -> Mapping[str, str]:
    """Tell what is here: the processor, and each back end."""
    compilers = {name: _told(name) for name in BACKENDS}
    return {"processor": processor(), **compilers, "candidates are confined by": told()}


def _told(backend: str) -> str:
    try:
        found = dict(versions(backend))
    except PlanishError as error:
        return str(error)
    found.pop("backend")
    return ", ".join(f"{name} {version}" for name, version in found.items())
