"""Compilers of this machine and their versions, found without importing any of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from planish.core import PlanishError, Target, TargetError, processor, unknown, usable_cores
from planish.core.installation import install_command
from planish.sandbox.confinement import sandbox_status

BACKENDS = ("xla", "iree")

_PACKAGES = {"xla": ("jaxlib",), "iree": ("iree-base-compiler", "iree-base-runtime")}
_FLAGS = {"xla": "XLA_FLAGS"}


def versions(name: str = "") -> Mapping[str, str]:
    """Return the facts that decide a back end's code: its name, versions, and flags of the environment.

    Args:
        name: one of `BACKENDS`; empty for the first.

    Raises:
        PlanishError: there is none of this name.
        TargetError: it is not installed.
    """
    chosen = name or BACKENDS[0]
    if chosen not in BACKENDS:
        raise unknown("level 'hlo' has no back end", chosen, BACKENDS)
    packages = _PACKAGES[chosen]
    try:
        found = {package: version(package) for package in packages}
    except PackageNotFoundError as error:
        what = f"the back end '{chosen}' is not installed"
        raise TargetError(what, f"Install it with: {install_command('hlo')}") from error
    flags = os.environ.get(_FLAGS.get(chosen, ""), "")
    # XLA's flags change the code that it makes: what was measured with others does not count here.
    return {"backend": chosen, **found, **({"flags": flags} if flags else {})}


def hlo_target(cores: int, backend: str = "") -> Target:
    """Describe this machine.

    Raises:
        TargetError: the machine has fewer cores, or there is no such back end.
    """
    there = usable_cores()
    if not 1 <= cores <= there:
        raise TargetError(f"{cores} cores requested, this machine has {there}", f"Use cores={there} at most.")
    return Target(processor(), frozenset(), cores, versions(backend))


def machine_facts() -> Mapping[str, str]:
    """Return facts of this machine: the processor, and each back end."""
    compilers: dict[str, str] = {}
    for name in BACKENDS:
        try:
            found = versions(name).items()
            compilers[name] = ", ".join(f"{key} {value}" for key, value in found if key != "backend")
        except PlanishError as error:
            compilers[name] = str(error)
    return {"processor": processor(), **compilers, "candidates are confined by": sandbox_status()}
