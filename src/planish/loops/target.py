"""The machine as the loops level sees it, and the code generators that it can use."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.metadata import version

from planish.core import Target, TargetError, caches, processor, unknown, usable_cores
from planish.loops.backends import PREFERRED, backend_named, backend_names


@cache
def available_backends() -> tuple[str, ...]:
    """List the back ends that work on this machine, the preferred first."""
    return tuple([name for name in backend_names() if backend_named(name).works()])


def preferred_backend() -> str:
    """Name the back end that is taken where none is asked for; no other package's is imported.

    Raises:
        TargetError: planish's own back ends are not found.
    """
    for name in PREFERRED:
        if name in backend_names() and backend_named(name).works():
            return name
    raise TargetError(
        "planish's own back ends for loops are not found",
        "Its entry points are older than its code: install planish again.",
    )


def this_machine(cores: int, backend: str = "") -> Target:
    """Describe this machine.

    Args:
        cores: how many a kernel may use.
        backend: the code generator; empty for the preferred one.

    Raises:
        PlanishError: there is no such back end.
        TargetError: the machine has fewer cores, or lacks the back end.
    """
    if not 1 <= cores <= usable_cores():
        raise TargetError(f"{cores} cores asked for, this process may use {usable_cores()}", "Use --cores.")
    chosen = backend or preferred_backend()
    if chosen not in backend_names():
        raise unknown("level 'loops' has no back end", chosen, backend_names())
    if not backend_named(chosen).works():
        raise TargetError(
            f"back end '{chosen}' does not work on this machine",
            f"It has: {', '.join(available_backends())}.",
        )
    made = backend_named(chosen)
    toolchain = {"backend": chosen} | {name: version(name) for name in made.packages}
    machine = made.machine if made.machine.caches else replace(made.machine, caches=caches())
    return Target(processor(), frozenset({chosen}), cores, toolchain, machine)
