"""`planish targets`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from planish.cli import options as given

if TYPE_CHECKING:
    from planish.core import Level


def targets(form: given.Format = "text") -> None:
    """Show this machine as each level sees it."""
    from planish.cli.output import document, facts, say
    from planish.core import registry
    from planish.levels import GROUP, level_named

    found = {name: _machine(level_named(name)) for name in registry.names(GROUP)}
    if form == "json":
        document({"targets": found})
        return
    for name, machine in found.items():
        say(name)
        facts({f"  {fact}": text for fact, text in machine.items()})


def _machine(level: Level) -> Mapping[str, str]:
    """Ask the level; one that has nothing particular to tell runs on the processor."""
    from planish.core import KnowsMachine, processor

    return level.machine() if isinstance(level, KnowsMachine) else {"processor": processor()}
